#!/usr/bin/perl
# Makes a script of random statements for sql.sh: random.pl SEED STATEMENTS. Each answer is ordered by all columns, and
# each change that stops half-way goes through the rows in the order of a key, so that an engine has no choice.
use strict;
use warnings;

my ($seed, $count) = @ARGV;
srand $seed;

sub one { $_[int rand @_] }
sub maybe { rand() < $_[0] }

my %types = (
    INT => sub { one('NULL', int(rand 40) - 20, int(rand 2_000_000) - 1_000_000) },
    'BIGINT UNSIGNED' => sub { one('NULL', int rand 30, '18446744073709551615', '9223372036854775808') },
    'DECIMAL(12,3)' => sub { one('NULL', sprintf('%.3f', rand(100) - 50), int rand 9) },
    DOUBLE => sub { one('NULL', int(rand 20) - 10, '1e10', '-2.5e-7', '0.5') },
    'VARCHAR(12)' => sub { text(12) },
    'CHAR(5)' => sub { text(5) },
    'VARBINARY(9)' => sub { text(9) },
    'VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci' => sub { text(12) },
    'VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_nopad_ci' => sub { text(12) },
    TEXT => sub { maybe(0.1) ? "REPEAT('" . one('x', 'ab') . "'," . int(rand 30000) . ')' : text(30) },
    DATE => sub { one('NULL', sprintf "'20%02d-%02d-%02d'", rand 30, 1 + rand 12, 1 + rand 28) },
    'DATETIME(3)' => sub { one('NULL', sprintf "'2020-01-%02d %02d:00:00.%03d'", 1 + rand 28, rand 24, rand 1000) },
    "ENUM('a','b','c')" => sub { one('NULL', "'a'", "'b'", "'c'") },
    'BIT(11)' => sub { one('NULL', int rand 2048) },
    POINT => sub { 'POINT(' . coordinate() . ',' . coordinate() . ')' },
    'VARCHAR(60)' => sub { one('NULL', "'" . join(' ', map { word() } 0 .. rand 5) . "'") },
);

# Of FULLTEXT and SPATIAL keys: words that meet often, places close by.
sub word { one('wren', 'owls', 'crow', 'jays', 'wrens', 'Crow') }
sub coordinate { one(0, 1, 2, 3, -1, 0.5, int(rand 200) - 100) }
# Whether a transaction is open: then InnoDB does not find by words what it has written itself.
my $open = 0;

sub text {
    my ($max) = @_;
    return one('NULL', "''") if maybe(0.15);
    my $text = join '', map { one('a', 'A', 'b', 'c', 'z', ' ', 's', 'ss', '1', '%', '_') } 1 .. 1 + int rand 4;
    return "'" . substr($text, 0, $max) . "'";
}

my @columns;
my $table = 0;
# Of a table that has a column of this kind InnoDB (10.11.18) forgets the words of rows that come after an ADD KEY in place, or another
# COMMENT: it has no FULLTEXT key.
my $virtual;

# How its pages ask to be packed; of InnoDB's table sql.sh makes a comment of it.
sub codec { '@CODEC=' . one('NONE', 'LZ4', 'ZSTD', 'DEFAULT') . '@' }

# Changes of columns, several at a time; those that are of a key stay.
my $fresh_column = 100;

sub place { one('', ' FIRST', ' AFTER ' . $_[0]) }

sub change_columns {
    my @what;
    for (1 .. 1 + int rand 2) {
        my $r = rand;
        my ($c, $other) = (one(@columns), one(@columns));
        if ($r < 0.5 && @columns < 9) {
            my $new = {name => 'c' . ++$fresh_column, type => one(sort keys %types), null => ''};
            # A long text is more than InnoDB has room for in its undo log.
            my $default = maybe(0.7) ? $new->{type} eq 'TEXT' ? text(30) : value($new) : undef;
            push @what, "ADD COLUMN $new->{name} $new->{type}" . (defined $default ? " DEFAULT ($default)" : '') .
                ($c->{said} ? '' : place($c->{name}));
            $new->{said} = 1;
            push @columns, $new;
        } elsif ($r < 0.75 && @columns > 2 && !$c->{kept} && !$c->{said}) {
            push @what, "DROP COLUMN $c->{name}";
            @columns = grep { $_ != $c } @columns;
            # No other change of this statement speaks of it.
            last;
        } elsif (!$c->{said} && !$other->{said} && $c != $other) {
            $c->{now} = ($c->{now} // $c->{type}) =~ s/^VARCHAR\(\d+\)/VARCHAR(300)/r if maybe(0.5);
            push @what, "MODIFY $c->{name} " . ($c->{now} // $c->{type}) . $c->{null} . place($other->{name});
            $c->{said} = 1;
        }
    }
    delete $_->{said} for @columns;
    push @what, codec() if maybe(0.2);
    print 'ALTER TABLE t ', join(', ', @what), ";\n" if @what;
    $open = 0 if @what;
}

sub key_column {
    my ($c) = @_;
    $c->{kept} = 1;
    my $name = $c->{name};
    $name .= '(' . (1 + int rand 4) . ')' if $c->{type} eq 'TEXT' || $c->{type} =~ /CHAR\(/ && maybe(0.2);
    $name .= ' DESC' if maybe(0.2);
    return $name;
}

sub create {
    $table++;
    print "DROP TABLE IF EXISTS t;\n";
    @columns = map { {name => "c$_", type => one(sort keys %types), null => maybe(0.15) ? ' NOT NULL' : ''} } 1 .. 2 + int rand 5;
    $_->{type} = one('POINT', 'VARCHAR(60)') for grep { maybe(0.15) } @columns;
    # A place is never NULL; it may have a SPATIAL key and no other.
    $_->{null} = ' NOT NULL' for grep { $_->{type} eq 'POINT' } @columns;
    my @parts = map { "$_->{name} $_->{type}$_->{null}" } @columns;
    # The primary key: a number, columns, or none.
    my @whole = grep { $_->{type} ne 'TEXT' && $_->{type} ne 'POINT' } @columns;
    my $kind = one('auto', 'auto', 'columns', 'none');
    unshift @parts, 'id INT AUTO_INCREMENT PRIMARY KEY' if $kind eq 'auto';
    push @parts, 'PRIMARY KEY (' . join(',', map { $_->{kept} = $_->{primary} = 1; $_->{name} . (maybe(0.3) ? ' DESC' : '') } some(2, @whole)) . ')'
        if $kind eq 'columns' && @whole;
    $virtual = maybe(0.3) && !(grep { $_->{type} eq 'VARCHAR(60)' } @columns) ? one(@columns) : undef;
    push @parts, "v INT AS (LENGTH($virtual->{name})) VIRTUAL" if $virtual;
    $virtual->{kept} = 1 if $virtual;
    push @parts, 'KEY kv (v)' if $virtual && maybe(0.6);
    my $n = 0;
    for (1 .. int rand 4) {
        my @in = some(3, grep { $_->{type} ne 'POINT' } @columns) or last;
        push @parts, one('KEY', 'KEY', 'UNIQUE KEY') . ' k' . ++$n . ' (' . join(',', map { key_column($_) } @in) . ')';
    }
    for my $c (@columns) {
        push @parts, searched($c) if maybe(0.7) && ($c->{type} eq 'POINT' || $c->{type} eq 'VARCHAR(60)');
    }
    print "CREATE TABLE t (", join(', ', @parts), ') ENGINE=@ENGINE@', maybe(0.3) ? ' ' . codec() : '', ";\n";
    $open = 0;
}

# A key to search by.
sub searched {
    my ($c) = @_;
    $c->{kept} = $c->{searched} = 1;
    return $c->{type} eq 'POINT' ? "SPATIAL KEY s$c->{name} ($c->{name})" : "FULLTEXT KEY s$c->{name} ($c->{name})";
}

sub found {
    my ($c) = @_;
    if ($c->{type} eq 'POINT') {
        my ($x, $y) = (int(rand 20) - 10, int(rand 20) - 10);
        my ($u, $v) = ($x + 1 + int rand 30, $y + 1 + int rand 30);
        return one('MBRWithin', 'MBRIntersects', 'MBRDisjoint', 'ST_Within') . "($c->{name}, ST_GeomFromText('POLYGON(($x $y,$u $y,$u $v,$x $v,$x $y))'))";
    }
    my $query = join ' ', map { one('', '+', '-') . word() } 0 .. rand 3;
    return "MATCH ($c->{name}) AGAINST ('$query'" . one('', ' IN BOOLEAN MODE') . ')';
}

# InnoDB (10.11.18) forgets the words of a row that a transaction has changed before it changes the row's primary key.
sub may_change {
    my ($c) = @_;
    return !($open && $c->{primary} && grep { $_->{searched} && $_->{type} ne 'POINT' } @columns);
}

# What can be searched by a key now.
sub searchable { grep { $_->{searched} && !($open && $_->{type} ne 'POINT') } @columns }

sub some {
    my ($max, @from) = @_;
    return unless @from;
    my @mixed = sort { $a->[0] <=> $b->[0] } map { [rand, $_] } @from;
    return map { $_->[1] } @mixed[0 .. (($max < @mixed ? int rand $max : int rand @mixed))];
}

sub value { $types{$_[0]{type}}->() }

sub condition {
    my @searchable = searchable();
    return found(one(@searchable)) if @searchable && maybe(0.3);
    my $c = one(@columns);
    my ($n, $v, $w) = ($c->{name}, value($c), value($c));
    return one("$n=$v", "$n<$v", "$n>=$v", "$n BETWEEN $v AND $w", "$n IS NULL", "$n IN ($v,$w)", "$n<=>$v", "$n<>$v",
        "$n LIKE 'a%'", "$n>$v AND " . one(@columns)->{name} . " IS NOT NULL", "$n<$v OR $n>$w");
}

# A family of tables with foreign keys. Rows are named by their numbers, and no statement both breaks a foreign key and
# makes a duplicate elsewhere, so that there is one error to give.
my @actions = ('RESTRICT', 'NO ACTION', 'CASCADE', 'CASCADE', 'SET NULL');
my $fresh = 100;

sub rules { join ' ', map { maybe(0.7) ? "ON $_ " . one(@actions) : () } 'DELETE', 'UPDATE' }

sub family {
    my $engine = 'ENGINE=@ENGINE@';
    print "DROP TABLE IF EXISTS grand, child, parent;\n";
    print "CREATE TABLE parent (id INT PRIMARY KEY, k VARCHAR(8), a INT NOT NULL, b INT, UNIQUE KEY(k), ",
        one('KEY', 'UNIQUE KEY'), " ab (a", one('', ' DESC'), ",b)) $engine;\n";
    print "CREATE TABLE child (id INT ", one('PRIMARY KEY', 'NOT NULL'), ', p INT', maybe(0.12) ? ' NOT NULL DEFAULT 1' : '',
        ', k VARCHAR(12), a INT, b INT, t TEXT, v INT AS (p+1) VIRTUAL', one('', ', KEY kv (v)'), one('', ', KEY ka (a DESC, b)'),
        ', FOREIGN KEY fp (p) REFERENCES parent(id) ', rules(),
        ', CONSTRAINT fk FOREIGN KEY (k) REFERENCES parent(k) ', rules(),
        ', CONSTRAINT fab FOREIGN KEY (a,b) REFERENCES parent(a,b) ', rules(), ", UNIQUE KEY uid (id)) $engine;\n";
    print "CREATE TABLE grand (id INT PRIMARY KEY, c INT, up INT, FOREIGN KEY (c) REFERENCES child(id) ", rules(),
        ', CONSTRAINT fup FOREIGN KEY (up) REFERENCES grand(id) ', rules(), ") $engine;\n";
    print "INSERT INTO parent SELECT seq, CONCAT('k',seq), seq DIV 3, seq FROM seq_1_to_9;\n";
    print "INSERT INTO child(id,p,k,a,b) SELECT seq, seq, CONCAT('k',seq), seq DIV 3, seq FROM seq_1_to_6;\n";
    print "SHOW CREATE TABLE child; SHOW CREATE TABLE grand;\n";
}

# A change of a definition, beside which the keys stay what they are.
sub family_change {
    $open = 0;
    return 'ALTER TABLE ' . one('parent', 'child', 'grand') . ' ' . one('FORCE', 'ENGINE=@ENGINE@', codec()) if maybe(0.4);
    return one('ALTER TABLE child MODIFY t LONGTEXT', 'ALTER TABLE child MODIFY t TEXT', 'ALTER TABLE child ADD KEY n (b, a)',
        'ALTER TABLE child DROP KEY n', 'ALTER TABLE child ADD COLUMN n INT DEFAULT 3 FIRST', 'ALTER TABLE child DROP COLUMN n', 'ALTER TABLE child ADD FULLTEXT KEY words (t)',
        'ALTER TABLE child DROP KEY words', 'ALTER TABLE child DROP FOREIGN KEY fp', 'ALTER TABLE child ADD CONSTRAINT fp FOREIGN KEY fp (p) REFERENCES parent(id) ' . rules());
}

sub family_statement {
    my $id = 1 + int rand 12;
    my $some = one("id=$id", "id=$id", "id BETWEEN $id AND " . ($id + int rand 3));
    my $ref = sub { one('NULL', 1 + int rand 12) };
    my $k = sub { maybe(0.2) ? 'NULL' : "'" . one('k', 'K') . (1 + int rand 12) . one('', '', ' ') . "'" };
    my $ignore = maybe(0.15) ? ' IGNORE' : '';
    $fresh++;
    return one(
        "INSERT$ignore INTO parent VALUES ($id,CONCAT('k',$id)," . int(rand 5) . ",$id)",
        "INSERT$ignore INTO child(id,p,k,a,b,t) VALUES ($id," . (1 + int rand 12) . ',' . $k->() . ',' . $ref->() . ',' .
            $ref->() . ",REPEAT('t',$id*900))",
        "INSERT$ignore INTO grand VALUES ($id," . $ref->() . ',' . one('NULL', $ref->(), $id) . ')',
        "REPLACE INTO parent VALUES ($id,CONCAT('k',$id)," . int(rand 5) . ",$id)",
        "DELETE$ignore FROM parent WHERE $some ORDER BY id", "DELETE FROM child WHERE $some ORDER BY id",
        "DELETE$ignore FROM grand WHERE $some ORDER BY id",
        "UPDATE parent SET id=$fresh WHERE id=$id", "UPDATE parent SET id=$id WHERE id>99 ORDER BY id LIMIT 1",
        "UPDATE parent SET k='k$fresh' WHERE id=$id", "UPDATE parent SET k=UPPER(k) WHERE id=$id",
        "UPDATE parent SET a=$id, b=$fresh WHERE id=$id", "UPDATE child SET p=" . $ref->() . " WHERE $some ORDER BY id",
        "UPDATE child SET k=" . $k->() . " WHERE $some ORDER BY id", "UPDATE$ignore child SET id=$fresh WHERE id=$id",
        "UPDATE grand SET c=" . $ref->() . " WHERE $some ORDER BY id", "UPDATE grand SET id=$fresh WHERE id=$id",
        "SELECT * FROM parent ORDER BY id", 'SELECT id, p, k, a, b, LENGTH(t), v FROM child ORDER BY id',
        'SELECT * FROM grand ORDER BY id', 'CHECK TABLE parent, child, grand');
}

sub all_columns { join ',', map { $_->{type} =~ /^BIT/ ? "$_->{name}+0" : $_->{type} eq 'TEXT' ? "MD5($_->{name})" : "HEX($_->{name})" } @columns }
sub order { join ',', 1 .. @columns }

# Sorted keys and batches of them where they can be had.
print "SET optimizer_switch='mrr=on,mrr_cost_based=off,mrr_sort_keys=", one('on', 'off'), "', join_cache_level=", one(2, 6, 8), ";\n"
    if maybe(0.4);
create();
family();
for (1 .. $count) {
    if (maybe(0.3)) {
        maybe(0.02) ? family() : print maybe(0.03) ? family_change() : family_statement(), ";\n";
        next;
    }
    my $r = rand;
    my $names = join ',', map { $_->{name} } @columns;
    if ($r < 0.02) { create() }
    elsif ($r < 0.35) {
        my @rows = map { '(' . join(',', map { value($_) } @columns) . ')' } 1 .. 1 + int rand 5;
        my $what = one('INSERT', 'INSERT', 'INSERT', 'INSERT IGNORE', 'REPLACE');
        my $tail = $what eq 'INSERT' && maybe(0.2) && may_change($columns[0]) ? " ON DUPLICATE KEY UPDATE $columns[0]{name}=" . value($columns[0]) : '';
        print "$what INTO t ($names) VALUES ", join(',', @rows), "$tail;\n";
    } elsif ($r < 0.5) {
        my $c = one(grep { may_change($_) } @columns) // next;
        print "UPDATE t SET $c->{name}=", value($c), ' WHERE ', condition(), ";\n";
    } elsif ($r < 0.58) { print 'DELETE FROM t WHERE ', condition(), ";\n" }
    elsif ($r < 0.8) { print 'SELECT ', all_columns(), ' FROM t WHERE ', condition(), ' ORDER BY ', order(), ";\n" }
    elsif ($r < 0.85) {
        # Of texts that compare as equal, either may be the least.
        my $c = one(@columns);
        my $n = $c->{name};
        my $ends = $c->{type} =~ /CHAR|TEXT/ ? "MIN($n)=MAX($n)" : "HEX(MIN($n)), HEX(MAX($n))";
        print "SELECT COUNT(*), COUNT(DISTINCT $n), $ends FROM t WHERE ", condition(), ";\n";
    }
    elsif ($r < 0.9) {
        my $what = one('BEGIN', 'COMMIT', 'ROLLBACK', 'SAVEPOINT a', 'ROLLBACK TO a', 'RELEASE SAVEPOINT a');
        print "$what;\n";
        $open = $what eq 'BEGIN' || $open && $what !~ /^(COMMIT|ROLLBACK)$/;
    }
    elsif ($r < 0.92) { print "SELECT COUNT(*), COUNT(y.$_) FROM t x ", one('', 'LEFT '), "JOIN t y ON x.$columns[0]{name}=y.$columns[0]{name};\n" for one(@columns)->{name} }
    elsif ($r < 0.93) {
        my $c = one(@columns);
        my $key = $c->{type} eq 'POINT' || $c->{type} eq 'VARCHAR(60)' && !$virtual && maybe(0.5) ? searched($c) : "KEY n$_ (" . key_column($c) . ')';
        print "ALTER TABLE t ADD $key", maybe(0.2) ? ', ' . codec() : '', ";\n";
        $open = 0;
    } elsif ($r < 0.935) {
        print "TRUNCATE t;\n";
        $open = 0;
    }
    elsif ($r < 0.945) { change_columns() }
    elsif ($r < 0.95) {
        print 'ALTER TABLE t ', one('FORCE', 'FORCE, ALGORITHM=COPY', 'ENGINE=@ENGINE@', codec(), codec() . ', FORCE'), ";\n";
        $open = 0;
    }
    elsif ($r < 0.96) { print "CHECK TABLE t;\n" }
    else { print 'SELECT ', all_columns(), ' FROM t ORDER BY ', order(), ";\n" }
}
print 'COMMIT; SELECT ', all_columns(), ' FROM t ORDER BY ', order(), ";\nCHECK TABLE t; DROP TABLE t;\n",
    "CHECK TABLE parent, child, grand; DROP TABLE grand, child, parent;\n";
