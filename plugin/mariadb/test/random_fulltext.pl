#!/usr/bin/perl
# Random documents of few words and random queries, for sql.sh: each row that is found, how well it fits, and each error.
#   random_fulltext.pl SEED QUERIES
use strict;
use warnings;

my ($seed, $queries) = @ARGV;
srand $seed;

# Words that meet often; some are stopwords, short, or in no document.
my @words = qw(wren wrens owl owls crow jay robin the of an it lark larks nowhere Wren);
sub word { $words[rand @words] }
sub text { join ' ', map { word() . (rand() < 0.1 ? ',' : '') } 1 .. int rand 12 }

sub phrase {
    my $phrase = '"' . join(' ', map { word() } 1 .. 1 + int rand 3) . '"';
    return rand() < 0.3 ? "$phrase @" . (1 + int rand 8) : $phrase;
}

sub operand {
    my ($depth) = @_;
    my $kind = rand;
    return phrase() if $kind < 0.2;
    return '(' . list($depth + 1) . ')' if $kind < 0.4 && $depth < 3;
    # Of words that begin alike, InnoDB counts the one that it comes to first.
    return ('cro', 'ja', 'robin')[rand 3] . '*' if $kind < 0.5;
    return word() . ('.', ',', '\'\'', '_')[rand 4] . word() if $kind < 0.56;
    return word();
}

sub list {
    my ($depth) = @_;
    return join ' ', map { ('', '', '+', '-', '~', '<', '>')[rand 7] . operand($depth) } 1 .. 1 + int rand 4;
}

# What hardly any parser was meant for.
sub noise { join '', map { ('+', '-', '(', ')', '"', '*', '@', '~', '<', '>', ' ', ' ', '3', 'crow', 'jay')[rand 15] } 1 .. 1 + int rand 10 }

print "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(200), b TEXT, FULLTEXT KEY (a, b), FULLTEXT KEY (b)) ENGINE=\@ENGINE\@ CHARSET=utf8mb4;\n";
print "INSERT INTO t VALUES ", join(',', map { "($_,'" . text() . "','" . text() . "')" } 1 .. 40), ";\n";
print "ANALYZE TABLE t;\n";
for my $n (1 .. $queries) {
    my $columns = rand() < 0.7 ? 'a, b' : 'b';
    my $kind = rand;
    my $query = $kind < 0.75 ? list(0) : $kind < 0.85 ? noise() : join(' ', map { word() } 1 .. 1 + int rand 4);
    # Behind a phrase InnoDB looks for what begins so on disk alone, not among the words that it has in memory.
    $query =~ s/\*//g if $query =~ /"/;
    my $mode = $kind < 0.85 ? ' IN BOOLEAN MODE' : $kind < 0.95 ? '' : ' WITH QUERY EXPANSION';
    # And a phrase with a + behind a list with two of them is looked for only in what that list left, whatever else has it.
    $query =~ s/\+"/"/g if $query =~ /\(.*\+.*\+/s;
    my $match = "MATCH ($columns) AGAINST ('$query'$mode)";
    # Behind a + of the same list InnoDB passes over a word that no document has between the first and the last found so far, and
    # does not count it: how much the word says then depends on the order in which the documents came. It shows in lists in lists.
    my $fit = $query =~ /\(/ && $query =~ /\+.*\+/s ? 'NULL' : "ROUND($match, 3)";
    print "SELECT id, $fit AS r FROM t WHERE $match ORDER BY r DESC, id;\n";
}
