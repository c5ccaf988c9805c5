//! Searches in a few small documents, against what can be told from their texts.
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::{Failure, Fit, Index, Mode, Positions, Posting, Search, Words, search};

/// Documents in memory: words are what blanks separate, `the` is a stopword, and one of one letter
/// is too short.
struct Library {
    texts: BTreeMap<u8, Vec<String>>,
    entries: BTreeMap<Vec<u8>, BTreeMap<u8, Vec<u8>>>,
    columns: u64,
}

fn cut(text: &str, number: &mut u64, columns: u64, column: u64, words: &mut Words) {
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let fit = match word {
            "the" => Fit::Stopword,
            word if word.chars().count() < 2 => Fit::Short,
            word if word.chars().count() > 8 => Fit::Long,
            _ => Fit::Indexed,
        };
        let key = [word.to_lowercase().as_bytes(), b"\0"].concat();
        words.push(&key, key.len() - 1, *number * columns + column, fit);
        *number += 1;
    }
}

impl Library {
    fn of(texts: &[&[&str]]) -> Library {
        let columns = texts.iter().map(|text| text.len()).max().unwrap_or(1) as u64;
        let texts = texts.iter().enumerate().map(|(nth, text)| {
            (nth as u8, text.iter().map(|column| (*column).to_string()).collect())
        });
        let mut library = Library { texts: texts.collect(), entries: BTreeMap::new(), columns };
        for number in library.texts.keys().copied().collect::<Vec<_>>() {
            let mut words = library.words(number);
            words.each_indexed(|key, places| {
                let of_word = library.entries.entry(key.to_vec()).or_default();
                of_word.insert(number, places.to_vec());
            });
        }
        library
    }

    fn words(&self, document: u8) -> Words {
        let (mut words, mut number) = (Words::default(), 0);
        for (column, text) in self.texts[&document].iter().enumerate() {
            cut(text, &mut number, self.columns, column as u64, &mut words);
        }
        words
    }

    fn ask(&mut self, query: &str, mode: Mode, expands: bool) -> Result<Vec<(u8, f32)>, String> {
        let (documents, columns) = (self.texts.len() as u64, self.columns);
        let what = Search { query: query.as_bytes(), mode, expands, documents, columns };
        match search(self, &what) {
            Ok(ranked) => {
                let all = (0..ranked.len()).map(|nth| ranked.get(nth).expect("there"));
                let all: Vec<(u8, f32)> = all.map(|(key, rank)| (key[0], rank)).collect();
                for &(document, rank) in &all {
                    assert_eq!(ranked.rank_of(&[document]), Some(rank));
                }
                Ok(all)
            }
            Err(Failure::Syntax(e)) => Err(e.to_string()),
            Err(Failure::LongPhrase) => Err("long".into()),
            Err(Failure::Index(())) => unreachable!("it always answers"),
        }
    }

    fn found(&mut self, query: &str) -> BTreeSet<u8> {
        let all = self.ask(query, Mode::Boolean, false).expect("a query");
        all.into_iter().map(|(document, _)| document).collect()
    }
}

impl Index for Library {
    type Error = ();

    fn split(&mut self, text: &[u8], words: &mut Words) -> Result<(), ()> {
        cut(&String::from_utf8_lossy(text), &mut 0, self.columns, 0, words);
        Ok(())
    }

    fn postings(
        &mut self,
        key: &[u8],
        begins: bool,
        visit: &mut dyn FnMut(Posting<'_>),
    ) -> Result<(), ()> {
        let fits = |word: &[u8]| if begins { word.starts_with(key) } else { word == key };
        for (_, documents) in self.entries.iter().filter(|(word, _)| fits(word)) {
            for (document, places) in documents {
                visit(Posting { document: &[*document], positions: Positions(places) });
            }
        }
        Ok(())
    }

    fn document(&mut self, key: &[u8], words: &mut Words) -> Result<bool, ()> {
        *words = self.words(key[0]);
        Ok(true)
    }
}

fn library() -> Library {
    Library::of(&[
        &["Database tutorial", "a tutorial for the database of birds"],
        &["Tuning", "how a database is tuned"],
        &["Birds", "the wren and the owl"],
        &["Owls", "an owl sees the wren, the owl hears it"],
        &["", ""],
    ])
}

#[test]
fn operators_choose_documents() {
    let mut library = library();
    for (query, wanted) in [
        ("database", &[0, 1][..]),
        ("database owl", &[0, 1, 2, 3]),
        ("+database owl", &[0, 1]),
        ("+owl +birds", &[2]),
        ("owl -birds", &[3]),
        ("-birds", &[]),
        ("tun*", &[1]),
        ("+(owl database) -wren", &[0, 1]),
        ("database ~birds", &[0, 1]),
        ("~birds", &[]),
        (">owl <database", &[0, 1, 2, 3]),
        // A stopword is in no document; what is to have it is nowhere.
        ("+the +owl", &[]),
        ("owl-birds", &[3]),
        // Several words between blanks are asked for one by one.
        ("+owl,birds", &[2]),
        ("", &[]),
        ("\"\"", &[]),
        ("()", &[]),
        ("+() owl", &[2, 3]),
    ] {
        let wanted: BTreeSet<u8> = wanted.iter().copied().collect();
        assert_eq!(library.found(query), wanted, "{query}");
    }
}

#[test]
fn phrases_are_words_in_a_row_in_one_column() {
    let mut library = library();
    for (query, wanted) in [
        ("\"wren and the owl\"", &[2][..]),
        ("\"wren the owl\"", &[3]),
        ("\"the wren\"", &[2, 3]),
        // What stands before the first word of the index is not looked at.
        ("\"for wren\"", &[]),
        ("\"and wren\"", &[]),
        ("\"tutorial tutorial\"", &[]),
        ("\"owl wren\" @2", &[]),
        ("\"owl wren\" @3", &[3]),
        ("\"owl wren\" @4", &[2, 3]),
        ("\"tutorial database\" @2", &[0]),
        // Across columns: database tutorial | a tutorial.
        ("\"database birds\" @3", &[0]),
        ("+\"owl hears\" wren", &[3]),
    ] {
        let wanted: BTreeSet<u8> = wanted.iter().copied().collect();
        assert_eq!(library.found(query), wanted, "{query}");
    }
    let long = vec!["owl"; 129].join(" ");
    let told = library.ask(&format!("\"{long}\""), Mode::Boolean, false);
    assert_eq!(told, Err("long".into()));
}

#[test]
fn what_cannot_be_parsed_gets_innodbs_error() {
    let mut library = library();
    for (query, what) in [
        ("+", "$end"),
        ("+ -owl", "'-'"),
        ("(owl", "$end"),
        ("(owl @", "'@'"),
        ("owl)", "')', expecting $end"),
        ("owl @3", "'@', expecting $end"),
        ("\"owl wren\" @owl", "FTS_TERM, expecting FTS_NUMB"),
        ("*", "$end, expecting FTS_TERM or FTS_NUMB or '*'"),
        ("owl**", "$end, expecting FTS_TERM or FTS_NUMB or '*'"),
        ("* +owl", "'+', expecting FTS_TERM or FTS_NUMB or '*'"),
        ("* \"owl\"", "FTS_TEXT, expecting FTS_TERM or FTS_NUMB or '*'"),
        ("+@", "'@'"),
        ("+)", "')'"),
    ] {
        let told = library.ask(query, Mode::Boolean, false);
        assert_eq!(told, Err(format!("syntax error, unexpected {what}")), "{query}");
    }
    let deep = |depth: usize| format!("{}owl{}", "(".repeat(depth), ")".repeat(depth));
    assert!(library.ask(&deep(32), Mode::Boolean, false).is_ok());
    assert!(library.ask(&deep(33), Mode::Boolean, false).is_err());
    assert!(library.ask(&deep(1_000_000), Mode::Boolean, false).is_err());
    // Side by side there may be any number.
    assert_eq!(library.found(&"(owl) +(wren) ".repeat(20_000)), BTreeSet::from([2, 3]));
}

#[test]
fn natural_language_knows_phrases_and_no_operators() {
    let mut library = library();
    let mut natural = |query: &str| {
        let all = library.ask(query, Mode::Natural, false).expect("a query");
        all.into_iter().map(|(document, _)| document).collect::<Vec<_>>()
    };
    // Two owls before one.
    assert_eq!(natural("owl"), [3, 2]);
    assert_eq!(natural("+owl -wren"), [3, 2]);
    assert_eq!(natural("\"owl hears\""), [3]);
    assert_eq!(natural("tun *"), [1]);
    assert_eq!(natural(""), [0; 0]);
}

#[test]
fn expansion_finds_what_shares_words_with_what_was_found() {
    let mut library = library();
    let all = library.ask("hears", Mode::Natural, true).expect("a query");
    let all: Vec<u8> = all.into_iter().map(|(document, _)| document).collect();
    assert_eq!(all, [3, 2]);
}

const OPERATORS: [&str; 6] = ["", "+", "-", "~", "<", ">"];

proptest! {
    #[test]
    fn any_query_has_an_answer(query in "[-+<>()~*\"@%ao1 \n\t']{0,24}", bytes in ".{0,20}") {
        let mut library = library();
        for query in [query, bytes] {
            for mode in [Mode::Natural, Mode::Boolean] {
                let _ = library.ask(&query, mode, mode == Mode::Natural);
            }
        }
    }

    #[test]
    fn flat_queries_choose_and_rank_as_their_words_say(
        texts in prop::collection::vec("([a-d]{2} ){0,5}", 1..7),
        query in prop::collection::vec((0usize..6, "[a-d]{2}"), 0..5),
    ) {
        // Other words than a few would hardly ever meet.
        let few = |text: &str| text.replace(['c', 'd'], "a");
        let texts: Vec<String> = texts.iter().map(|text| few(text)).collect();
        let query: Vec<(usize, String)> =
            query.iter().map(|(op, word)| (*op, few(word))).collect();
        let columns: Vec<[&str; 1]> = texts.iter().map(|text| [&text[..]]).collect();
        let documents: Vec<&[&str]> = columns.iter().map(|column| &column[..]).collect();
        let mut library = Library::of(&documents);
        let asked: Vec<String> =
            query.iter().map(|(op, word)| format!("{}{word}", OPERATORS[*op])).collect();
        let ranked = library.ask(&asked.join(" "), Mode::Boolean, false).expect("a query");

        let count = |document: usize, word: &str| {
            texts[document].split(' ').filter(|other| *other == word).count()
        };
        let having = |word: &str| -> BTreeSet<usize> {
            (0..texts.len()).filter(|&document| count(document, word) > 0).collect()
        };
        let of = |ops: &[usize]| -> Vec<&str> {
            query.iter().filter(|(op, _)| ops.contains(op)).map(|(_, word)| &word[..]).collect()
        };
        let mut wanted: BTreeSet<usize> = BTreeSet::new();
        of(&[0, 4, 5]).iter().for_each(|word| wanted.extend(having(word)));
        if let Some((first, others)) = of(&[1]).split_first() {
            wanted = having(first);
            others.iter().for_each(|word| wanted.retain(|&d| count(d, word) > 0));
        }
        of(&[2]).iter().for_each(|word| wanted.retain(|&d| count(d, word) == 0));
        let found = ranked.iter().map(|(document, _)| *document as usize);
        let found: BTreeSet<usize> = found.collect();
        prop_assert_eq!(&found, &wanted);

        let plain = query.iter().all(|(op, _)| *op < 2);
        let once = query.iter().map(|(_, word)| word).collect::<BTreeSet<_>>().len() == query.len();
        for (document, rank) in ranked.iter().filter(|_| plain && once) {
            let relevance = |word: &String| {
                let having = having(word).len();
                let ratio = if having == texts.len() {
                    1.0001
                } else {
                    texts.len() as f64 / having.max(1) as f64
                };
                count(*document as usize, word) as f64 * ratio.log10() * ratio.log10()
            };
            let sum: f64 = query.iter().map(|(_, word)| relevance(word)).sum();
            prop_assert!((f64::from(*rank) - sum).abs() < 1e-5, "{} {}", rank, sum);
        }
    }

    #[test]
    fn phrases_and_nearness_are_those_of_the_text(
        text in "([ab]{2} |the |x ){0,12}",
        phrase in "[ab]{2}( [ab]{2}| the| x){0,3}",
        distance in 1u64..6,
    ) {
        let mut library = Library::of(&[&[&text]]);
        let there: Vec<&str> = text.split_whitespace().collect();
        let words: Vec<&str> = phrase.split_whitespace().collect();
        let is_there = there.windows(words.len()).any(|window| window == words);
        let found = library.found(&format!("\"{phrase}\""));
        prop_assert_eq!(!found.is_empty(), is_there, "{} in {}", phrase, text);

        let of_index = words.iter().copied().filter(|word| word.len() == 2);
        let of_index: BTreeSet<&str> = of_index.collect();
        let near = there
            .windows(there.len().min(distance as usize).max(1))
            .any(|window| of_index.iter().all(|word| window.contains(word)));
        let near = near || words.len() == 1 && is_there;
        let found = library.found(&format!("\"{phrase}\" @{distance}"));
        prop_assert_eq!(!found.is_empty(), near, "{} near in {}", phrase, text);
    }

    #[test]
    fn places_come_back(places in prop::collection::btree_set(0u64..1 << 40, 1..20)) {
        let mut words = Words::default();
        places.iter().rev().for_each(|&place| words.push(b"w", 1, place, Fit::Indexed));
        words.push(b"v", 1, 3, Fit::Stopword);
        let mut seen = Vec::new();
        words.each_indexed(|key, kept| seen.push((key.to_vec(), kept.to_vec())));
        prop_assert_eq!(seen.len(), 1);
        let positions = Positions(&seen[0].1);
        prop_assert_eq!(positions.count(), places.len() as u64);
        prop_assert_eq!(positions.places(), places.into_iter().collect::<Vec<_>>());
    }
}
