#!/usr/bin/perl
# Random statements in three sessions, one at a time, on InnoDB and then the same on Weir: what each is answered, which waits,
# and which goes on when. See random_sessions.sh.
#   random_sessions.pl SOCKET OUT SEED STEPS
# InnoDB comes first and the script is made on the way: a session that waits is given nothing to do. It ends where
# none waits, before a deadlock if there is one: its victim each engine chooses in its own way.
# Of two that are let go by one statement, which comes first is their threads' affair, in both engines: what differs from
# there on is played again, until both have once said the same. If they never do, it stays open, and is told apart: one
# engine may choose the same one each time.
# Two more stay open where the table has indexes beside the primary key; one script of three has a
# table without, and there they do not:
# - A deadlock of Weir's alone. A row that is found by an index is locked with its entry, in Weir always, in InnoDB only
#   if the page of the entry was written to lately: nothing that a script could know.
# - An INSERT for which InnoDB alone waits. Beside an entry that was deleted and not yet purged, it locks the next one
#   too; what an open transaction has deleted is not purged, however long one waits.
# A definition changes where no transaction has used the table yet: else the change waits for the server's own lock. A
# snapshot that is older may read the table as it was, or get 1412. Which of the two, each engine decides; rows that
# are neither the one's nor the other's are a difference. Where InnoDB says 1412 it says so to writes too, Weir does not:
# the script rolls back.
use strict;
use warnings;
use IPC::Open2;
use IO::Select;
use Time::HiRes qw(time sleep);

my ($socket, $out, $seed, $steps) = @ARGV;
srand $seed;
my $marker = 'that was all';
my @client = ('mariadb', '--no-defaults', '-uroot', '-S', $socket, '-N', '--force', '--unbuffered');

sub one { $_[int rand @_] }
sub maybe { rand() < $_[0] }

sub session {
    my $pid = open2(my $from, my $to, 'sh', '-c', 'exec "$@" 2>&1', 'sh', @client, @_);
    return {pid => $pid, from => $from, to => $to, text => '', owes => 0};
}

sub answer {
    my ($s, $seconds) = @_;
    my $end = time + $seconds;
    while (1) {
        return $1 if $s->{text} =~ s/^(.*?)^\Q$marker\E\n//ms;
        my $left = $end - time;
        return undef if $left <= 0 || !IO::Select->new($s->{from})->can_read($left);
        sysread($s->{from}, $s->{text}, 65536, length $s->{text}) or die "a session is gone: $s->{text}";
    }
}

sub ask {
    my ($s, $sql) = @_;
    print {$s->{to}} "$sql;\nSELECT '$marker';\n";
    my $said = answer($s, 30) // die "no answer to $sql";
    die "$sql: $said" if $said =~ /^ERROR/;
    return $said;
}

my %waits_sql = (
    InnoDB => "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state='LOCK WAIT' AND trx_mysql_thread_id=",
    Weir => "SELECT COUNT(*) FROM information_schema.weir_transactions WHERE state='waiting' AND session=",
);

# What the session says; undef if it waits for a lock. InnoDB looks anew only when no query has asked for a tenth of a second.
sub outcome {
    my ($s, $engine, $monitor) = @_;
    my $waiting = 0;
    for (1 .. 300) {
        my $answer = answer($s, 0.13);
        if (defined $answer) {
            $s->{owes} = 0;
            $answer =~ s/ at line \d+//g;
            return $answer;
        }
        $waiting = ask($monitor, $waits_sql{$engine} . $s->{id}) > 0 ? $waiting + 1 : 0;
        if ($waiting == 2) {
            $s->{owes} = 1;
            return undef;
        }
    }
    die "seed $seed, $engine: neither an answer nor a wait";
}

my ($fresh, $xids) = (100, 0);
# After so many steps no session waited; the script was longer, and ends there.
my ($calm, $cut) = (0, 0);
# The first step that let a session go while several waited.
my $raced;
# At REPEATABLE READ and above InnoDB locks the gaps beside rows, Weir what was read: rows are named by keys that are there. (Of a
# key that is not there, two sessions may both lock InnoDB's gap; in Weir the second one waits.)
my $level = one('READ COMMITTED', 'READ COMMITTED', 'READ COMMITTED', 'REPEATABLE READ', 'REPEATABLE READ', 'SERIALIZABLE');
my $points = $level ne 'READ COMMITTED';
# Whether the table's definition has changed since the last snapshot.
my $altered = 0;
my $plain = maybe(1 / 3);
my $snapshot = 'START TRANSACTION WITH CONSISTENT SNAPSHOT';

# The way to the rows is said, where there are two: engines estimate differently, and lock what they pass. No ranges of ids
# with an end: InnoDB locks, and waits for, the row behind it too. No condition beside an
# index: InnoDB keeps rows locked that do not fit.
sub where {
    my ($deletes) = @_;
    my $id = 1 + int rand 10;
    return ('', "id=$id") if $points;
    my @all = (['', "id=$id"], ['', "id=$id"], ['', 'c=' . int(rand 4)], ['', 'c>' . int(rand 4)], ['', "b=$id"]);
    my $a = int rand 5;
    push @all, ['FORCE INDEX(PRIMARY)', "id IN ($id," . (1 + int rand 10) . ')'], ['FORCE INDEX(PRIMARY)', "id>$id"]
        unless $deletes;
    push @all, map { ['FORCE INDEX(a)', $_] } "a=$a", "a>=$a" unless $deletes || $plain;
    return @{one(@all)};
}

# A change of definition. The optimizer is kept from the index: the ways to rows stay those that are said.
sub alter {
    my @all = (
        'FORCE', 'FORCE, ALGORITHM=COPY', 'ENGINE=its own', 'ADD COLUMN IF NOT EXISTS d INT DEFAULT 7', 'ADD COLUMN IF NOT EXISTS e INT NOT NULL DEFAULT 8 FIRST',
        "ADD COLUMN IF NOT EXISTS f VARCHAR(20) DEFAULT 'f' AFTER id", 'MODIFY COLUMN IF EXISTS f VARCHAR(300)', 'DROP COLUMN IF EXISTS f', 'MODIFY c INT FIRST', 'MODIFY c INT',
        'DROP COLUMN IF EXISTS d', 'DROP COLUMN IF EXISTS e', 'ADD INDEX IF NOT EXISTS n (c) IGNORED', 'DROP INDEX IF EXISTS n', 'RENAME TO u',
        'CODEC=' . one('NONE', 'LZ4', 'ZSTD'), 'CODEC=ZSTD, FORCE', 'CODEC=LZ4, ADD COLUMN IF NOT EXISTS d INT DEFAULT 7',
    );
    push @all, 'PARTITION BY HASH(id) PARTITIONS 3', 'REMOVE PARTITIONING', 'ADD PARTITION PARTITIONS 1' if $plain;
    my $how = one(@all);
    # Where rows are named by keys that are there, they are there again.
    my $again = $points ? '; INSERT INTO t (id,a,b,c) SELECT seq, seq % 5, seq, seq % 4 FROM seq_1_to_10' : '';
    return "TRUNCATE TABLE t$again" if maybe(0.05);
    return $how eq 'RENAME TO u' ? 'RENAME TABLE t TO u, u TO t' : "ALTER TABLE t $how";
}

# Of a session that is free, beside the others.
sub statement {
    my ($s, @others) = @_;
    my ($xa, $xid) = ($s->{xa} // '', $s->{xid});
    return one("XA PREPARE $xid", "XA PREPARE $xid", "XA COMMIT $xid ONE PHASE", "XA ROLLBACK $xid") if $xa eq 'idle';
    return one("XA COMMIT $xid", "XA ROLLBACK $xid") if $xa eq 'prepared';
    return 'ROLLBACK' if $s->{outdated};
    my $id = 1 + int rand 10;
    my ($way, $where) = where();
    my $t = "t $way WHERE $where";
    # A snapshot that has read nothing yet: the table changes under it, and then it reads.
    my $unread = grep { $_->{snapshot} && !$_->{used} } @others;
    return alter() if !$s->{open} && maybe($unread ? 0.7 : 0.2) && !grep { $_->{owes} || $_->{used} } @others;
    return 'SELECT * FROM t ORDER BY id' if $s->{snapshot} && !$s->{used} && maybe($altered ? 1 : 0.3);
    my @all = (
        ("UPDATE t $way SET c=c+1 WHERE $where") x 3, "UPDATE t $way SET a=" . int(rand 5) . " WHERE $where",
        "SELECT * FROM " . ($level eq 'SERIALIZABLE' ? "t WHERE id=$id" : $t) . ' ORDER BY id',
        # Of a transaction that has written nothing InnoDB takes rows without a history for its own (0 is the number of both),
        # and keeps those locked that do not fit.
        "SELECT id, c FROM $t ORDER BY id " . one('FOR UPDATE', $s->{open} && !$s->{wrote} && $where =~ /^c/ ? () : 'LOCK IN SHARE MODE'),
        "INSERT INTO t (id,a,b,c) VALUES (" . ++$fresh . ", " . int(rand 5) . ", $fresh, " . int(rand 4) . ')',
    );
    # The entry that goes, InnoDB locks with the gap beside it.
    push @all, "UPDATE t SET b=" . ++$fresh . " WHERE id=$id" unless $points;
    push @all, 'SELECT * FROM t ORDER BY id' if $level ne 'SERIALIZABLE';
    push @all, "DELETE FROM t WHERE " . (where(1))[1], "DELETE FROM t WHERE id=$id",
        "UPDATE t FORCE INDEX(PRIMARY) SET c=c+1 WHERE id>$id ORDER BY id LIMIT 2"
        unless $points;
    # A row that this session has locked shared, and another one waits for: here InnoDB skips it, Weir locks it more strongly.
    push @all, "SELECT id FROM $t ORDER BY id " . one('FOR UPDATE NOWAIT', 'FOR UPDATE SKIP LOCKED')
        unless $points || grep { $_->{owes} } @others;
    push @all, "SELECT a FROM t FORCE INDEX(a) WHERE a=" . int(rand 5) . ' ORDER BY a ' . one('LOCK IN SHARE MODE', 'FOR UPDATE')
        unless $points || $plain;
    # A duplicate of another key than the primary one: InnoDB locks the gaps beside it too, at any level.
    push @all, "INSERT INTO t (id,a,b,c) VALUES ($id, 1, NULL, 1)", "INSERT INTO t (id,a,b,c) VALUES (" . ++$fresh . ", 1, $id, 1)",
        "REPLACE INTO t (id,a,b,c) VALUES ($id, 2, $id, 2)", "INSERT INTO t (id,a,b,c) VALUES ($id, 3, NULL, 3) ON DUPLICATE KEY UPDATE c=c+10"
        if !$points && ($plain || !$s->{open});
    if ($xa) {
        # XA PREPARE releases shared locks in InnoDB, in Weir none.
        @all = grep { !/SHARE MODE/ && !(/^SELECT/ && $level eq 'SERIALIZABLE') } @all;
        push @all, ("XA END $xid") x 3;
    } elsif ($s->{open}) {
        push @all, 'COMMIT', 'COMMIT', 'ROLLBACK', $s->{point} ? 'ROLLBACK TO p' : 'SAVEPOINT p';
    } else {
        push @all, ('BEGIN') x 4, ("XA START 'x" . ++$xids . "'") x 3;
        # At SERIALIZABLE, Weir's reads lock after it as well.
        push @all, ($snapshot) x 2 if $level ne 'SERIALIZABLE';
    }
    return one(@all);
}

sub note {
    my ($s, $sql) = @_;
    $s->{snapshot} = $sql eq $snapshot if !$s->{open};
    $altered = $sql =~ /^(ALTER|RENAME|TRUNCATE) / || $altered && $sql ne $snapshot;
    $s->{open} = 1 if $sql eq 'BEGIN' || $sql eq $snapshot || $sql =~ /^XA START/;
    $s->{used} = 1 if $s->{open} && $sql =~ /\bt\b/;
    $s->{wrote} = 1 if $s->{open} && $sql =~ /^(UPDATE|INSERT|REPLACE|DELETE|SELECT .* FOR UPDATE)/;
    $s->{open} = $s->{point} = $s->{used} = $s->{wrote} = 0 if $sql =~ /^(XA )?(COMMIT|ROLLBACK)\b(?! TO)/;
    ($s->{xa}, $s->{xid}) = ('active', $1) if $sql =~ /^XA START (.*)/;
    $s->{xa} = {END => 'idle', PREPARE => 'prepared', COMMIT => '', ROLLBACK => ''}->{$1} if $sql =~ /^XA (END|PREPARE|COMMIT|ROLLBACK)/;
    $s->{point} = 1 if $sql eq 'SAVEPOINT p';
}

# Plays a script, or makes it; returns what was said, step by step.
sub play {
    my ($engine, $script) = @_;
    my $db = 'random_sessions_' . lc $engine;
    my $monitor = session();
    ask($monitor, $_) for "DROP DATABASE IF EXISTS $db", "CREATE DATABASE $db", "USE $db",
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c INT" . ($plain ? '' : ', KEY a (a), UNIQUE KEY b (b)') . ") ENGINE=$engine",
        "INSERT INTO t SELECT seq, seq % 5, seq, seq % 4 FROM seq_1_to_10";
    my @sessions = map { session($db) } 1 .. 3;
    for my $s (@sessions) {
        $s->{id} = ask($s, 'SELECT CONNECTION_ID()') + 0;
        ask($s, "SET SESSION TRANSACTION ISOLATION LEVEL $level");
        ask($s, "SET SESSION innodb_lock_wait_timeout=600, weir_lock_wait_timeout=600");
    }
    my $makes = !@$script;
    my @said;
    while ($makes ? @said < $steps : @said < @$script) {
        if ($makes) {
            my @free = grep { !$sessions[$_]{owes} } 0 .. 2;
            @free = grep { $sessions[$_]{outdated} } @free if grep { $sessions[$_]{outdated} } @free;
            my $n = one(@free);
            push @$script, [$n, statement(map { $sessions[$_] } $n, grep { $_ != $n } 0 .. 2)];
        }
        my ($n, $sql) = @{$script->[@said]};
        my $s = $sessions[$n];
        my $said = "$n: $sql\n";
        if ($s->{owes}) {
            push @said, $said . "(has not been answered yet)\n";
            next;
        }
        my $waited = grep { $_->{owes} } @sessions;
        my $sent = $sql =~ s/ENGINE=\K.*/$engine/r;
        $sent =~ s/CODEC=\w+/COMMENT='a codec'/ if $engine eq 'InnoDB';
        print {$s->{to}} $sent, ";\nSELECT '$marker';\n";
        $said .= outcome($s, $engine, $monitor) // "(waits)\n";
        note($s, $sql);
        $s->{outdated} = $said =~ /^ERROR 1412 /m;
        # A session that goes on may let others go on.
        my (%on, $more);
        do {
            $more = 0;
            for my $other (grep { $sessions[$_]{owes} && $_ != $n } 0 .. 2) {
                my $answer = outcome($sessions[$other], $engine, $monitor) // next;
                $on{$other} = $answer;
                $more = 1;
            }
        } while ($more);
        $said .= "$_: (goes on)\n$on{$_}" for sort keys %on;
        if ($makes && $said =~ /Deadlock found/) {
            last;
        }
        $raced //= @said if $waited > 1 && %on;
        push @said, $said;
        $calm = @said if !grep { $_->{owes} } @sessions;
    }
    if ($makes && $calm < @$script) {
        splice @$script, $calm;
        $cut = 1;
    }
    for my $s (grep { !$_->{owes} } @sessions) {
        ask($s, "XA END $s->{xid}") if ($s->{xa} // '') eq 'active';
        ask($s, $s->{xa} ? "XA ROLLBACK $s->{xid}" : 'ROLLBACK');
    }
    ask($monitor, "KILL $_->{id}") for grep { $_->{owes} } @sessions;
    for my $s (@sessions) {
        print {$s->{to}} "exit\n";
        close $s->{to};
        waitpid $s->{pid}, 0;
    }
    my $way = $plain ? '' : 'FORCE INDEX(a)';
    push @said, ask($monitor, "SELECT * FROM $db.t ORDER BY id") . ask($monitor, "SELECT a, id FROM $db.t $way WHERE a>=0 ORDER BY a, id");
    my $check = ask($monitor, "CHECK TABLE $db.t");
    $check =~ s/\Q$db\E/db/g;
    push @said, $check;
    print {$monitor->{to}} "exit\n";
    close $monitor->{to};
    waitpid $monitor->{pid}, 0;
    return @said;
}

mkdir $out;
my (@script, @innodb, @weir);

# The first step of which the two engines have said something different.
sub differs {
    my ($step) = grep { ($innodb[$_] // '') ne ($weir[$_] // '') && !outdated($_) } 0 .. $#innodb;
    return $step;
}

# Whether one of them says in this step that a snapshot is older than the table's definition.
sub outdated {
    my ($step) = @_;
    return $innodb[$step] =~ /^\d: SELECT (?!.*(FOR UPDATE|SHARE MODE))/ && "$innodb[$step]$weir[$step]" =~ /^ERROR 1412 /m;
}

@innodb = play('InnoDB', \@script);
if ($cut) {
    @script or print("random sessions: seed $seed: a deadlock too soon, 0 waits\n"), exit 0;
    @innodb = play('InnoDB', \@script);
}
@weir = play('Weir', \@script);
my ($first, $again) = (differs(), 0);
# Whichever of two goes on first: what InnoDB has ever said is right.
my %right = ("@innodb" => 1);
while (defined $first && defined $raced && $raced <= $first && ++$again <= 12) {
    if ($again % 3) {
        @weir = play('Weir', \@script);
    } else {
        @innodb = play('InnoDB', \@script);
        $right{"@innodb"} = 1;
    }
    $first = $right{"@weir"} ? undef : differs();
}
for my $engine (['InnoDB', @innodb], ['Weir', @weir]) {
    my ($name, @said) = @$engine;
    open my $file, '>', "$out/$seed.$name" or die $out;
    print $file "# $level\n", @said;
    close $file;
}
my $waits = () = join('', @innodb) =~ /\(waits\)/g;
my $how = "$waits waits, $level, " . ($plain ? 'no index' : 'indexes') . ($again ? ", played again $again times" : '');
if (!defined $first) {
    print "random sessions: seed $seed: same as InnoDB (", scalar @script, " steps, $how)\n";
    exit 0;
}
my $alone = $innodb[$first] =~ /^\d: (INSERT|REPLACE) .*\n\(waits\)/ && $weir[$first] !~ /\(waits\)/;
# At READ COMMITTED InnoDB keeps the lock of a row that a statement has waited for, although the row does not fit, until
# its transaction ends; Weir gives it back.
my %kept;
for (map { split /\n/ } @innodb[0 .. $first - 1]) {
    $kept{$1} = 1 if /^(\d): \(goes on\)/;
    delete $kept{$1} if /^(\d): (XA )?(COMMIT|ROLLBACK)\b(?! TO)/;
}
delete $kept{$1} if $innodb[$first] =~ /^(\d): /;
$alone ||= $level eq 'READ COMMITTED' && %kept && $innodb[$first] =~ /\(waits\)/ && $weir[$first] !~ /\(waits\)/;
my $open = defined $raced && $raced <= $first ? 'two were let go at once' : $plain ? '' : $weir[$first] =~ /Deadlock found/ ? 'a deadlock' : $alone ? 'InnoDB alone waits' : '';
if ($open) {
    print "random sessions: seed $seed: open: $open ($how)\n";
    exit 0;
}
print "random sessions: seed $seed: DIFFERENT ($how)\n", `diff -U4 --label innodb --label weir $out/$seed.InnoDB $out/$seed.Weir | head -n 40`;
exit 1;
