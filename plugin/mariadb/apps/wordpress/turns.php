<?php
// WordPress takes posts and comments.
//   turns.php SOCKET DATABASE install | N ROUND      prints "took posts SECONDS" and "took comments SECONDS"
require __DIR__ . '/start.php';
add_filter('comment_flood_filter', '__return_false');
$n = (int) $argv[3];
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
