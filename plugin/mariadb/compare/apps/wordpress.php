<?php
// WordPress from the command line, in the place of its wp-config.php: installs itself, or takes posts and comments.
//   wordpress.php SOCKET DATABASE install
//   wordpress.php SOCKET DATABASE N ROUND      prints "took posts SECONDS" and "took comments SECONDS"
[, $socket, $database, $what] = $argv;
define('DB_NAME', $database);
define('DB_USER', 'app');
define('DB_PASSWORD', 'app');
define('DB_HOST', "localhost:$socket");
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('WP_CONTENT_DIR', '/usr/share/wordpress/wp-content');
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
if ($what === 'install') define('WP_INSTALLING', true);
define('ABSPATH', '/usr/share/wordpress/');
$_SERVER += ['HTTP_HOST' => 'localhost', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'REQUEST_METHOD' => 'GET', 'REQUEST_URI' => '/', 'REMOTE_ADDR' => '127.0.0.1'];
$table_prefix = 'wp_';
require ABSPATH . 'wp-settings.php';
add_filter('pre_wp_mail', '__return_true');
if ($what === 'install') {
    require ABSPATH . 'wp-admin/includes/upgrade.php';
    wp_install('A blog', 'admin', 'admin@example.org', true, '', 'a long word of passage');
    exit;
}
add_filter('comment_flood_filter', '__return_false');
$n = (int) $what;
$round = (int) $argv[4];
wp_set_current_user(1);
$begin = microtime(true);
$posts = [];
for ($i = 0; $i < $n; $i++) {
    $id = wp_insert_post([
        'post_title' => "Post $round $i", 'post_content' => str_repeat("Words of post $i in round $round. ", 60),
        'post_status' => 'publish', 'tags_input' => ['t' . $i % 7, "r$round"], 'meta_input' => ['a' => $i, 'b' => "x$i"],
    ], true);
    if (is_wp_error($id)) { fwrite(STDERR, $id->get_error_message() . "\n"); exit(1); }
    $posts[] = $id;
}
echo 'took posts ', microtime(true) - $begin, "\n";
$begin = microtime(true);
for ($i = 0; $i < $n; $i++) {
    $id = wp_new_comment([
        'comment_post_ID' => $posts[$i % 10], 'comment_author' => "A $i", 'comment_author_email' => "a$i@example.org",
        'comment_author_url' => '', 'comment_content' => str_repeat("Comment $i of round $round. ", 10), 'comment_type' => 'comment',
        'user_id' => 0, 'comment_parent' => 0, 'comment_author_IP' => "10.0.$round.$i", 'comment_agent' => 'cli',
    ], true);
    if (is_wp_error($id)) { fwrite(STDERR, $id->get_error_message() . "\n"); exit(1); }
}
echo 'took comments ', microtime(true) - $begin, "\n";
