<?php
// WordPress does what its users do, and prints what it sees: "answer, tab, step" a line. No answer depends on the hour or on chance.
//   walk.php SOCKET DATABASE install | walk
require __DIR__ . '/start.php';
add_filter('comment_flood_filter', '__return_false');
wp_set_current_user(1);
mt_srand(7);

function step(string $name, $answer): void {
    global $wpdb;
    if (is_wp_error($answer)) $answer = 'error: ' . $answer->get_error_message();
    if ($wpdb->last_error !== '') { $answer = [$answer, 'database error' => $wpdb->last_error]; $wpdb->last_error = ''; }
    echo json_encode($answer), "\t", $name, "\n";
}
function titles(array $query): array {
    return array_map(fn($post) => $post->post_title, (new WP_Query($query + ['posts_per_page' => 20, 'suppress_filters' => true]))->posts);
}
function call(string $method, string $route, array $given = []): array {
    $request = new WP_REST_Request($method, $route);
    foreach ($given as $name => $value) $request->set_param($name, $value);
    $response = rest_do_request($request);
    $data = $response->get_data();
    $show = fn($one) => array_intersect_key((array) $one, array_flip(['id', 'slug', 'name', 'status', 'code', 'title', 'count', 'parent']));
    return [$response->get_status(), array_is_list($data) ? array_map($show, $data) : $show($data)];
}
// Days of posts, so that their order is one.
function day(int $n): string { return gmdate('Y-m-d H:i:s', gmmktime(12, 0, 0, 1, 1, 2020) + $n * 86400); }

$words = ['river', 'weir', 'flood', 'mill', 'café', 'naïve', '東京', 'stone', 'O\'Brien', '100%', 'under_score', "back\\slash", '😀 smile'];
$users = [];
foreach (['editor', 'author', 'contributor', 'subscriber'] as $n => $role) {
    $users[] = wp_insert_user(['user_login' => "u$n", 'user_email' => "u$n@example.org", 'user_pass' => 'secret', 'role' => $role, 'display_name' => "U $n", 'user_registered' => day($n)]);
}
step('users', $users);
step('a user twice', wp_insert_user(['user_login' => 'u0', 'user_email' => 'other@example.org', 'user_pass' => 'x']));
step('users by role', array_map(fn($u) => $u->user_login, get_users(['role__in' => ['editor', 'author'], 'orderby' => 'login'])));
$parents = [];
foreach (['Water', 'Air', 'Earth'] as $name) $parents[] = wp_insert_term($name, 'category')['term_id'];
foreach ($parents as $i => $parent) for ($j = 0; $j < 4; $j++) wp_insert_term("Sub $i $j", 'category', ['parent' => $parent]);
step('terms', array_map(fn($t) => "$t->name below $t->parent", get_terms(['taxonomy' => 'category', 'hide_empty' => false])));
$posts = [];
for ($i = 0; $i < 150; $i++) {
    $posts[] = wp_insert_post([
        'post_title' => "Post $i of " . $words[$i % count($words)], 'post_content' => "On {$words[$i % 13]} and {$words[($i * 5 + 1) % 13]}. " . str_repeat("Words of $i. ", $i * 20 % 4000),
        'post_status' => ['publish', 'publish', 'draft', 'private', 'pending', 'publish'][$i % 6], 'post_author' => [1, ...$users][$i % 5], 'post_date' => day($i),
        'post_category' => [$parents[$i % 3]], 'tags_input' => ['t' . $i % 7, $words[$i % 4]], 'meta_input' => ['size' => $i * 37 % 100, 'note' => "x{$words[$i % 13]}", 'list' => [1, [$i]]],
    ], true);
}
step('posts', $posts);
step('meta', [get_post_meta($posts[7], 'list', true), get_post_meta($posts[12], 'note', true), get_post_meta($posts[3])]);
foreach ($words as $word) step("search $word", titles(['s' => $word, 'post_status' => 'any']));
step('search of two words', titles(['s' => 'river words']));
step('search without a word', titles(['s' => 'mill -stone']));
step('by size', titles(['meta_key' => 'size', 'orderby' => ['meta_value_num' => 'DESC', 'ID' => 'ASC'], 'meta_query' => [['key' => 'size', 'value' => [20, 60], 'type' => 'NUMERIC', 'compare' => 'BETWEEN']]]));
step('by two metas', titles(['meta_query' => ['relation' => 'OR', ['key' => 'note', 'value' => 'xmill'], ['key' => 'absent', 'compare' => 'EXISTS']]]));
step('by category', titles(['category_name' => 'water', 'tag' => 't3']));
step('by terms', titles(['tax_query' => ['relation' => 'AND', ['taxonomy' => 'category', 'terms' => $parents[0]], ['taxonomy' => 'post_tag', 'field' => 'slug', 'terms' => ['t1', 't2'], 'operator' => 'NOT IN']]]));
step('by day', titles(['date_query' => [['after' => '2020-02-01', 'before' => '2020-02-20']]]));
step('by author', titles(['author' => $users[1], 'orderby' => 'title', 'order' => 'ASC']));
step('page 3', titles(['posts_per_page' => 7, 'paged' => 3]));
$found = new WP_Query(['posts_per_page' => 5, 'post_status' => 'publish']);
step('found', [$found->found_posts, $found->max_num_pages]);
for ($i = 0; $i < 30; $i++) wp_update_post(['ID' => $posts[$i], 'post_content' => "Changed $i", 'post_title' => "Changed post $i"]);
step('revisions', array_map(fn($n) => count(wp_get_post_revisions($posts[$n])), range(0, 40)));
step('restored', wp_restore_post_revision(array_key_first(array_slice(wp_get_post_revisions($posts[2]), -1, 1, true))));
$page = 0;
for ($i = 0; $i < 12; $i++) $page = wp_insert_post(['post_type' => 'page', 'post_title' => "Page $i", 'post_status' => 'publish', 'post_parent' => $i % 4 ? $page : 0, 'menu_order' => 12 - $i, 'post_date' => day($i)]);
step('pages', array_map(fn($p) => "$p->post_title below $p->post_parent", get_pages(['sort_column' => 'menu_order'])));
step('a page by its path', get_page_by_path('page-0/page-1/page-2')->post_title ?? null);
$comments = [];
for ($i = 0; $i < 80; $i++) {
    $comments[] = wp_insert_comment(['comment_post_ID' => $posts[$i % 10], 'comment_author' => "A $i", 'comment_author_email' => "a$i@example.org", 'comment_content' => "Comment $i " . $words[$i % 13],
        'comment_parent' => $i > 20 ? $comments[$i - 20] : 0, 'comment_approved' => $i % 3 ? 1 : 0, 'comment_date' => day($i), 'comment_author_IP' => "10.0.0.$i"]);
}
step('comments', array_map(fn($c) => $c->comment_content, get_comments(['post_id' => $posts[1], 'orderby' => 'comment_ID', 'status' => 'approve'])));
step('comments searched', array_map(fn($c) => $c->comment_ID, get_comments(['search' => 'weir', 'orderby' => 'comment_ID'])));
for ($i = 0; $i < 80; $i += 5) wp_spam_comment($comments[$i]);
for ($i = 1; $i < 80; $i += 7) wp_trash_comment($comments[$i]);
for ($i = 2; $i < 80; $i += 11) wp_delete_comment($comments[$i], true);
step('comments counted', (array) wp_count_comments());
for ($i = 40; $i < 60; $i++) wp_trash_post($posts[$i]);
for ($i = 45; $i < 50; $i++) wp_untrash_post($posts[$i]);
for ($i = 60; $i < 80; $i++) wp_delete_post($posts[$i], true);
step('posts counted', (array) wp_count_posts());
step('a term is merged', [wp_delete_term($parents[2], 'category', ['default' => $parents[1]]), get_term($parents[1])->count]);
for ($i = 0; $i < 60; $i++) update_option("o$i", str_repeat("v$i ", $i * $i), $i % 2 ? 'no' : 'yes');
for ($i = 0; $i < 60; $i += 3) update_option("o$i", ["changed" => $i]);
for ($i = 1; $i < 60; $i += 6) delete_option("o$i");
step('options', array_map(fn($i) => md5(serialize(get_option("o$i"))), range(0, 59)));
for ($i = 0; $i < 20; $i++) set_transient("t$i", [$i], $i % 2 ? 3600 : 0);
delete_transient('t4');
step('transients', array_map(fn($i) => get_transient("t$i"), range(0, 19)));
$menu = wp_create_nav_menu('Menu');
for ($i = 0; $i < 6; $i++) wp_update_nav_menu_item($menu, 0, ['menu-item-title' => "Item $i", 'menu-item-url' => "http://localhost/$i", 'menu-item-status' => 'publish', 'menu-item-position' => 6 - $i]);
step('menu', array_map(fn($item) => $item->title, wp_get_nav_menu_items($menu)));
step('REST: create', call('POST', '/wp/v2/posts', ['title' => 'By REST', 'content' => 'Some', 'status' => 'publish', 'date' => '2021-05-05T05:05:05']));
step('REST: list', call('GET', '/wp/v2/posts', ['per_page' => 15, 'orderby' => 'title', 'order' => 'asc']));
step('REST: search', call('GET', '/wp/v2/search', ['search' => 'river']));
step('REST: categories', call('GET', '/wp/v2/categories', ['per_page' => 50, 'orderby' => 'count', 'order' => 'desc', 'exclude' => []])[0]);
step('REST: users', call('GET', '/wp/v2/users', ['roles' => ['author']]));
step('REST: absent', call('GET', '/wp/v2/posts/999999'));
wp_delete_user($users[3], $users[0]);
step('a user deleted', count_user_posts($users[0]));
step('counts', count_users());
ob_start();
require ABSPATH . 'wp-admin/includes/export.php';
export_wp(['content' => 'post']);
step('export', substr_count(ob_get_clean(), '<item>'));
// What administrators' tools do.
foreach ($wpdb->tables() as $table) {
    step("repair of $table", array_map(fn($row) => $row->Msg_text, $wpdb->get_results("CHECK TABLE $table")));
}
step('upgrade', (function () { require_once ABSPATH . 'wp-admin/includes/upgrade.php'; return dbDelta('all', false); })());
step('a column more', maybe_add_column($wpdb->posts, 'post_extra', "ALTER TABLE $wpdb->posts ADD COLUMN post_extra varchar(20) DEFAULT NULL"));
