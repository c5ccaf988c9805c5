//! A query run: which documents fit it, and how well.
//!
//! What the operators do, in which order, is InnoDB's (its documentation says what they mean, and
//! the SQL scripts of the plugin compare). A list is gone through three times: what adds documents
//! or changes how well they fit, then what is to be in each, then what is to be in none. How well a
//! document fits is the sum, over the words of the query that it has, of
//! `tf * idf * idf`: how often it has the word, and the decimal logarithm of how many documents
//! there are for each that has it; operators add or take up to one.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use crate::lexer::Mode;
use crate::matching::{in_a_row, is_near};
use crate::query::{Op, Stage, SyntaxError, What, parse};
use crate::ranked::Ranked;
use crate::step::{Found, Step};
use crate::words::{Fit, Positions, Words};

/// A document that has a word, as an index keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Posting<'p> {
    /// The key of the document.
    pub document: &'p [u8],
    /// Where the word stands in it.
    pub positions: Positions<'p>,
}

/// An index, and the texts behind it.
pub trait Index {
    /// Why it could not be read.
    type Error;

    /// The words of a text of the query, by its bytes.
    ///
    /// # Errors
    /// Its own.
    fn split(&mut self, text: &[u8], words: &mut Words) -> Result<(), Self::Error>;

    /// Visits all documents that have a word, by its key, or all words whose keys begin so: each
    /// word with its documents.
    ///
    /// # Errors
    /// Its own.
    fn postings(
        &mut self,
        key: &[u8],
        begins: bool,
        visit: &mut dyn FnMut(Posting<'_>),
    ) -> Result<(), Self::Error>;

    /// All words of a document, those that are not in the index included. `false`: it has gone.
    ///
    /// # Errors
    /// Its own.
    fn document(&mut self, key: &[u8], words: &mut Words) -> Result<bool, Self::Error>;
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Search<'q> {
    /// The query's bytes.
    pub query: &'q [u8],
    /// How it is read.
    pub mode: Mode,
    /// Looks a second time, for all words of the documents that the first look finds.
    pub expands: bool,
    /// About how many documents there are.
    pub documents: u64,
    /// How many columns the index has.
    pub columns: u64,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure<E> {
    /// The query cannot be read.
    Syntax(SyntaxError),
    /// A phrase has more words than are looked for at once.
    LongPhrase,
    /// The index could not be read.
    Index(E),
}

impl<E> From<E> for Failure<E> {
    fn from(e: E) -> Self {
        Failure::Index(e)
    }
}

/// Words in a phrase, as InnoDB.
const PHRASE_WORDS_MAX: usize = 128;

/// Looks for the documents that fit a query.
///
/// # Errors
/// [`Failure`].
pub fn search<I: Index>(index: &mut I, search: &Search<'_>) -> Result<Ranked, Failure<I::Error>> {
    let stages = parse(search.query, search.mode).map_err(Failure::Syntax)?;
    let mut run = Run {
        index,
        columns: search.columns.max(1),
        documents: Documents::default(),
        terms: Vec::new(),
        by_key: HashMap::default(),
        found: Found::default(),
        narrowed: false,
    };
    run.list(&stages)?;
    if search.expands {
        run.expand()?;
    }
    Ok(run.ranked(search.documents))
}

/// Numbers for keys of documents.
#[derive(Default)]
struct Documents {
    numbers: HashMap<Arc<[u8]>, u32>,
    keys: Vec<Arc<[u8]>>,
}

impl Documents {
    fn number(&mut self, key: &[u8]) -> u32 {
        if let Some(&number) = self.numbers.get(key) {
            return number;
        }
        let (number, key): (u32, Arc<[u8]>) = (self.keys.len() as u32, key.into());
        self.numbers.insert(key.clone(), number);
        self.keys.push(key);
        number
    }
}

/// A word of the query, with those that begin so if it stands for them.
#[derive(Default)]
struct Term {
    beginning: Vec<u8>,
    begins: bool,
    /// How many documents were met that have it; one that is asked for twice counts twice.
    met: u64,
    /// How often documents have it.
    counts: HashMap<u32, u64>,
}

/// Words of a query as they are looked for.
struct Phrase {
    /// Key, distance from the first, whether it is in the index.
    words: Vec<(Vec<u8>, u64, bool)>,
}

struct Run<'i, I> {
    index: &'i mut I,
    columns: u64,
    documents: Documents,
    terms: Vec<Term>,
    by_key: HashMap<Vec<u8>, u32>,
    found: Found,
    /// Documents that are to have something were chosen: no others come in.
    narrowed: bool,
}

impl<I: Index> Run<'_, I> {
    fn list(&mut self, stages: &[Stage<'_>]) -> Result<(), Failure<I::Error>> {
        for stage in stages {
            for pass in [None, Some(Op::Must), Some(Op::MustNot)] {
                for (op, what) in stage {
                    self.item(*op, what, pass)?;
                }
            }
        }
        Ok(())
    }

    fn item(&mut self, op: Op, what: &What<'_>, pass: Option<Op>) -> Result<(), Failure<I::Error>> {
        let is_now = Some(op) == pass || pass.is_none() && op != Op::Must && op != Op::MustNot;
        match what {
            What::Term { text, begins } if is_now || pass.is_none() => {
                let words = self.words_of_term(text)?;
                // Several words between two operators are done at once, whatever the operator.
                let is_due = if words.len() > 1 { pass.is_none() } else { is_now };
                let last = words.len();
                for (nth, (key, beginning)) in words.iter().enumerate().filter(|_| is_due) {
                    self.word(op, key, *beginning, *begins && nth + 1 == last)?;
                }
                Ok(())
            }
            _ if !is_now => Ok(()),
            What::Term { .. } => Ok(()),
            What::Text { text: [], .. } => Ok(()),
            What::Text { text, distance } => self.text(op, text, *distance),
            What::Sub(stages) if stages.is_empty() => Ok(()),
            What::Sub(stages) => self.sub(op, stages),
        }
    }

    /// Those that are looked for: the first whatever its length, unless it is too long.
    fn words_of_term(&mut self, text: &[u8]) -> Result<Vec<(Vec<u8>, usize)>, I::Error> {
        let (mut words, mut kept) = (Words::default(), Vec::new());
        self.index.split(text, &mut words)?;
        for word in words.iter() {
            if word.fit != Fit::Long && (kept.is_empty() || word.fit != Fit::Short) {
                kept.push((word.key.to_vec(), word.beginning.len()));
            }
        }
        Ok(kept)
    }

    fn term(&mut self, key: &[u8], beginning: usize, begins: bool) -> u32 {
        if let Some(&term) = self.by_key.get(key) {
            self.terms[term as usize].begins |= begins;
            return term;
        }
        let term = self.terms.len() as u32;
        let beginning = key[..beginning].to_vec();
        self.terms.push(Term { beginning, begins, ..Term::default() });
        self.by_key.insert(key.to_vec(), term);
        term
    }

    fn word(
        &mut self,
        op: Op,
        key: &[u8],
        beginning: usize,
        begins: bool,
    ) -> Result<(), Failure<I::Error>> {
        let number = self.term(key, beginning, begins);
        let nothing_left = self.found.is_empty();
        if op == Op::MustNot && nothing_left || op == Op::Must && nothing_left && self.narrowed {
            return Ok(());
        }
        let mut step = Step::new(op, self.narrowed);
        let (term, found) = (&mut self.terms[number as usize], &mut self.found);
        let documents = &mut self.documents;
        let looked_for = if begins { &key[..beginning] } else { key };
        self.index.postings(looked_for, begins, &mut |posting| {
            let document = documents.number(posting.document);
            term.met += 1;
            term.counts.entry(document).or_insert_with(|| posting.positions.count());
            step.take(found, document, 0.0);
            step.note(found, document, number);
        })?;
        self.end(step);
        Ok(())
    }

    fn end(&mut self, step: Step) {
        if step.op == Op::Must {
            self.found = step.kept;
            self.narrowed = true;
        }
    }

    fn sub(&mut self, op: Op, stages: &[Stage<'_>]) -> Result<(), Failure<I::Error>> {
        let outer = std::mem::take(&mut self.found);
        let narrowed = std::mem::take(&mut self.narrowed);
        self.list(stages)?;
        let inner = std::mem::replace(&mut self.found, outer);
        self.narrowed = narrowed;
        let mut step = Step::new(op, narrowed);
        for (document, standing) in inner {
            step.take(&mut self.found, document, standing.rank);
            for term in standing.terms {
                step.note(&mut self.found, document, term);
            }
        }
        self.end(step);
        Ok(())
    }

    fn phrase(&mut self, text: &[u8]) -> Result<Phrase, Failure<I::Error>> {
        let mut words = Words::default();
        self.index.split(text, &mut words)?;
        let of_index = |fit| fit == Fit::Indexed;
        // What comes before the first word of the index is not looked at.
        let words = words.iter().skip_while(|word| !of_index(word.fit));
        let words =
            words.enumerate().map(|(at, word)| (word.key.to_vec(), at as u64, of_index(word.fit)));
        let phrase = Phrase { words: words.collect() };
        let indexed = phrase.words.iter().filter(|word| word.2).count();
        if indexed > PHRASE_WORDS_MAX { Err(Failure::LongPhrase) } else { Ok(phrase) }
    }

    fn text(
        &mut self,
        op: Op,
        text: &[u8],
        distance: Option<u64>,
    ) -> Result<(), Failure<I::Error>> {
        let phrase = self.phrase(text)?;
        let (mut numbers, mut places) = (Vec::new(), Vec::new());
        for (key, _, _) in phrase.words.iter().filter(|word| word.2) {
            numbers.push(self.term(key, key.len(), false));
        }
        for (nth, (key, _, _)) in phrase.words.iter().filter(|word| word.2).enumerate() {
            let (mut of_word, documents) = (BTreeMap::new(), &mut self.documents);
            let term = &mut self.terms[numbers[nth] as usize];
            self.index.postings(key, false, &mut |posting| {
                let document = documents.number(posting.document);
                term.met += 1;
                term.counts.entry(document).or_insert_with(|| posting.positions.count());
                of_word.insert(document, posting.positions.places());
            })?;
            if of_word.is_empty() {
                places.clear();
                break;
            }
            places.push(of_word);
        }
        let mut step = Step::new(op, self.narrowed);
        let first = if places.is_empty() { BTreeMap::new() } else { places.remove(0) };
        for (document, starts) in first {
            if self.fits(&phrase, distance, document, starts, &places)? {
                step.take(&mut self.found, document, 0.0);
                for &term in &numbers {
                    step.note(&mut self.found, document, term);
                }
            }
        }
        self.end(step);
        Ok(())
    }

    /// Whether a document that has the first word of a phrase, where `starts` says, has it all.
    fn fits(
        &mut self,
        phrase: &Phrase,
        distance: Option<u64>,
        document: u32,
        starts: Vec<u64>,
        others: &[BTreeMap<u32, Vec<u64>>],
    ) -> Result<bool, I::Error> {
        let mut all = vec![starts];
        for other in others {
            let Some(places) = other.get(&document) else { return Ok(false) };
            all.push(places.clone());
        }
        if phrase.words.len() == 1 {
            return Ok(true);
        }
        if let Some(distance) = distance {
            return Ok(is_near(&all, self.columns, distance));
        }
        let at = phrase.words.iter().filter(|word| word.2).map(|word| word.1);
        let words: Vec<(u64, Vec<u64>)> = at.zip(all).collect();
        let starts = in_a_row(&words, self.columns);
        if starts.is_empty() || phrase.words.iter().all(|word| word.2) {
            return Ok(!starts.is_empty());
        }
        self.has_between(phrase, document, &starts)
    }

    /// Whether the words of a phrase that are not in the index stand where they should.
    fn has_between(
        &mut self,
        phrase: &Phrase,
        document: u32,
        starts: &[u64],
    ) -> Result<bool, I::Error> {
        let mut words = Words::default();
        let key = self.documents.keys[document as usize].clone();
        if !self.index.document(&key, &mut words)? {
            return Ok(false);
        }
        let there: HashMap<u64, &[u8]> = words.iter().map(|word| (word.place, word.key)).collect();
        Ok(starts.iter().any(|start| {
            phrase.words.iter().filter(|word| !word.2).all(|(key, distance, _)| {
                let place = start.saturating_add(distance.saturating_mul(self.columns));
                there.get(&place) == Some(&&key[..])
            })
        }))
    }

    /// Adds what has any word of the documents found.
    fn expand(&mut self) -> Result<(), Failure<I::Error>> {
        let mut more: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut words = Words::default();
        let documents: HashSet<u32> = self.found.keys().copied().collect();
        for document in documents {
            words.clear();
            let key = self.documents.keys[document as usize].clone();
            self.index.document(&key, &mut words)?;
            let indexed = words.iter().filter(|word| word.fit == Fit::Indexed);
            more.extend(indexed.map(|word| word.key.to_vec()));
        }
        for term in self.terms.iter().filter(|term| term.begins) {
            more.retain(|key| !key.starts_with(&term.beginning));
        }
        for key in more {
            if !self.by_key.contains_key(&key) {
                self.word(Op::Add, &key, key.len(), false)?;
            }
        }
        Ok(())
    }

    fn ranked(self, documents: u64) -> Ranked {
        let idf = |term: &Term| {
            // A word that all have says little, but something.
            let ratio = if documents == term.met {
                1.0001
            } else {
                documents.max(1) as f64 / term.met.max(1) as f64
            };
            ratio.log10()
        };
        let idfs: Vec<f64> = self.terms.iter().map(idf).collect();
        let mut all = Vec::with_capacity(self.found.len());
        for (document, mut standing) in self.found {
            standing.terms.sort_unstable();
            let mut rank = standing.rank;
            for term in standing.terms {
                let counts = &self.terms[term as usize].counts;
                let count = counts.get(&document).copied().unwrap_or_default();
                let idf = idfs[term as usize];
                rank += (count as f64 * idf * idf) as f32;
            }
            all.push((self.documents.keys[document as usize].clone(), rank));
        }
        Ranked::of(all)
    }
}
