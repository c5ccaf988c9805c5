#!/usr/bin/perl
# Random geometries, changes and windows, for a comparison of engines; each window also without the key.
#   random_spatial.pl SEED WINDOWS
use strict;
use warnings;
my ($seed, $windows) = @ARGV;
srand($seed);
sub number {
	my $kind = int rand 10;
	return int(rand(21)) - 10 if $kind < 4;
	return sprintf("%.3f", rand(360) - 180) if $kind < 8;
	return int(rand(2e6)) - 1e6 if $kind < 9;
	return (0, 256, -256, 0.5)[int rand 4];
}
sub side { my $kind = int rand 4; return $kind == 0 ? 1 : $kind == 1 ? int(rand(5)) + 1 : $kind == 2 ? sprintf("%.3f", rand(40) + 0.001) : int(rand(1e5)) + 1; }
sub box {
	my ($x, $y, $w, $h) = (number(), number(), side(), side());
	my ($u, $v) = ($x + $w, $y + $h);
	return "POLYGON(($x $y,$u $y,$u $v,$x $v,$x $y))";
}
sub point { return "POINT(" . number() . " " . number() . ")"; }
sub geometry {
	my $kind = int rand 10;
	return point() if $kind < 4;
	return "LINESTRING(" . number() . " " . number() . "," . number() . " " . number() . ")" if $kind < 6;
	return "MULTIPOINT(" . number() . " " . number() . "," . number() . " " . number() . ")" if $kind < 7;
	return box();
}
sub value { return "ST_GeomFromText('" . geometry() . "')"; }
print "CREATE TABLE t (id INT PRIMARY KEY, g GEOMETRY NOT NULL, p POINT NOT NULL, n INT, SPATIAL KEY g (g), SPATIAL KEY p (p)) ENGINE=\@ENGINE\@;\n";
my $next = 1;
sub row { return "(" . $next++ . ", " . value() . ", ST_GeomFromText('" . point() . "'), " . int(rand(5)) . ")"; }
print "INSERT INTO t VALUES " . join(", ", map { row() } 1 .. 20) . ";\n" for 1 .. 15;
my @relations = qw(MBRIntersects MBRWithin MBRContains MBRDisjoint MBREquals MBRTouches MBROverlaps ST_Intersects ST_Within ST_Contains ST_Equals);
my $open = 0;
for my $n (1 .. $windows) {
	my $act = int rand 12;
	if ($act == 0 && !$open) { print "BEGIN;\n"; $open = 1; }
	elsif ($act == 1 && $open) { print((rand() < 0.5 ? "ROLLBACK" : "COMMIT") . ";\n"); $open = 0; }
	elsif ($act == 2) { print "INSERT INTO t VALUES " . row() . ";\n"; }
	elsif ($act == 3) { print "UPDATE t SET g = " . value() . " WHERE id = " . (1 + int rand $next) . ";\n"; }
	elsif ($act == 4) { print "DELETE FROM t WHERE id = " . (1 + int rand $next) . ";\n"; }
	elsif ($act == 5) { print "UPDATE t SET id = id + 100000, n = n + 1 WHERE id = " . (1 + int rand $next) . ";\n"; }
	elsif ($act == 6) { print "UPDATE t FORCE INDEX (p) SET p = ST_GeomFromText('" . point() . "') WHERE MBRWithin(p, ST_GeomFromText('" . box() . "'));\n"; }
	elsif ($act == 7) { print "DELETE FROM t WHERE MBREquals(g, " . value() . ");\n"; }
	my ($column, $relation) = (rand() < 0.6 ? "g" : "p", $relations[int rand @relations]);
	my $window = rand() < 0.3 ? value() : "ST_GeomFromText('" . box() . "')";
	my $condition = rand() < 0.8 ? "$relation($column, $window)" : "$relation($window, $column)";
	for my $hint ("FORCE INDEX ($column)", "IGNORE INDEX ($column)") {
		print "SELECT COUNT(*), GROUP_CONCAT(id ORDER BY id) FROM t $hint WHERE $condition;\n";
	}
}
print "COMMIT;\nCHECK TABLE t;\n";
