#!/usr/bin/perl
# Runs scripts of several sessions on InnoDB and on Weir and compares what each session is answered, and when: at once,
# or only after a step of another session. See sessions.sh.
use strict;
use warnings;
use IPC::Open2;
use IO::Select;
use Time::HiRes qw(time);

my ($socket, $out, @scripts) = @ARGV;
mkdir $out;
my $marker = 'that was all';
# Steps that wait for an answer that is not owed, and in how many engines.
my %idle;
# Those of which that is known of this version of the server.
my %free;

# What differs in one version of the server stands in NAME.VERSION.diff.
my @ask = ('mariadb', '--no-defaults', '-uroot', '-S', $socket, '-N', '-e', "SELECT SUBSTRING_INDEX(VERSION(), '.', 2)");
open my $version, '-|', @ask or die "no server";
chomp(my $series = <$version>);
close $version;

sub session {
    my ($db) = @_;
    my @command = ('mariadb', '--no-defaults', '-uroot', '-S', $socket, '-N', '--force', '--unbuffered', $db);
    my $pid = open2(my $from, my $to, 'sh', '-c', 'exec "$@" 2>&1', 'sh', @command);
    return {pid => $pid, from => $from, to => $to, text => '', owed => 0};
}

# What the session has said by the end of its statement; undef if it still waits after so many seconds.
sub answer {
    my ($s, $seconds) = @_;
    my $end = time + $seconds;
    until ($s->{text} =~ s/^(.*?)^\Q$marker\E\n//ms) {
        my $left = $end - time;
        return undef if $left <= 0 || !IO::Select->new($s->{from})->can_read($left);
        sysread($s->{from}, $s->{text}, 65536, length $s->{text}) or return $s->{text} . "(the session is gone)\n";
        next unless $s->{text} =~ /^\Q$marker\E\n/m;
        return $1 if $s->{text} =~ s/^(.*?)^\Q$marker\E\n//ms;
    }
    return $1;
}

sub leave {
    my ($s) = @_;
    print {$s->{to}} "exit\n";
    close $s->{to};
    kill 'TERM', $s->{pid} if $s->{owed};
    waitpid $s->{pid}, 0;
}

sub play {
    my ($engine, $path) = @_;
    my (%sessions, $said);
    my $db = 'sessions_it';
    system('mariadb', '--no-defaults', '-uroot', '-S', $socket, '-e', "DROP DATABASE IF EXISTS $db; CREATE DATABASE $db");
    open my $script, '<', $path or die $path;
    while (my $line = <$script>) {
        chomp $line;
        # Steps at which one version of the server waits in neither engine, and another does.
        $free{"$path line $_"}= 1 for $line =~ /^# \Q$series\E owes nothing: (.*)/ ? split(/ /, $1) : ();
        next if $line =~ /^\s*(#|$)/;
        $line =~ /^(\w+): (.*)$/ or die "$path: $line";
        my ($name, $sql) = ($1, $2);
        my $s = $sessions{$name} //= session($db);
        if ($sql eq '-') {
            # In the other engine it may.
            $idle{"$path line $."}++, $said .= "$line\n(has answered)\n", next unless $s->{owed};
        } elsif ($sql =~ /^KILL (QUERY|CONNECTION) (\w+)$/) {
            my $id = $sessions{$2}{id} // die "$path: say '$2: ID' first";
            $sql = "KILL $1 $id";
        }
        if ($sql eq 'ID') {
            print {$s->{to}} "SELECT CONNECTION_ID();\nSELECT '$marker';\n";
            $s->{id} = answer($s, 5) + 0;
            next;
        }
        $said .= "$line\n";
        if ($sql eq 'DISCONNECT') {
            # The server may go on with it for a moment.
            leave(delete $sessions{$name});
            select undef, undef, undef, 0.3;
            next;
        }
        if ($sql ne '-') {
            (my $real = $sql) =~ s/\@ENGINE\@/$engine/g;
            print {$s->{to}} "$real;\nSELECT '$marker';\n";
        }
        my $answer = answer($s, $sql eq '-' ? 5 : 0.5);
        $s->{owed} = !defined $answer;
        $answer //= "(waits)\n";
        # Line numbers count what the client was given; the engines name themselves.
        $answer =~ s/ at line \d+//g;
        $answer =~ s/\b$engine\b/E/g;
        $said .= $answer;
    }
    for my $s (values %sessions) {
        print {$s->{to}} "ROLLBACK;\n";
        leave($s);
    }
    return $said;
}

my $failed = 0;
for my $path (@scripts) {
    (my $name_path = $path) =~ s/\.txt$//;
    (my $name = $name_path) =~ s{.*/}{};
    my $wanted = -e "$name_path.$series.diff" ? "$name_path.$series.diff" : "$name_path.diff";
    my %said;
    for my $engine ('InnoDB', 'Weir') {
        $said{$engine} = play($engine, $path);
        open my $file, '>', "$out/$name.$engine" or die $out;
        print $file $said{$engine};
        close $file;
    }
    my @never = sort grep { $idle{$_} == 2 && !$free{$_} } keys %idle;
    die "no answer is owed in either engine: @never" if @never;
    my $steps = () = $said{Weir} =~ /^\w+: /mg;
    if ($said{InnoDB} eq $said{Weir} && !-s $wanted) {
        print "sessions: $name: same as InnoDB ($steps steps)\n";
        next;
    }
    # What is meant to differ, with its reason, stands beside the script.
    my $diff = `diff -U1 --label innodb --label weir $out/$name.InnoDB $out/$name.Weir | grep -v '^\@\@'`;
    my $meant = -e $wanted ? `grep -v '^#' $wanted` : '';
    if ($diff eq $meant) {
        print "sessions: $name: as meant ($steps steps)\n";
    } else {
        print "sessions: $name: DIFFERENT\n$diff";
        $failed = 1;
    }
}
exit $failed;
