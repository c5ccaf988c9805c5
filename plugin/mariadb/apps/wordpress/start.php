<?php
// WordPress from the command line, in the place of its wp-config.php. With "install" in the place of the rest it installs itself,
// and that is all.
//   SCRIPT.php SOCKET DATABASE install | ...
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
require ABSPATH . 'wp-admin/includes/admin.php';
add_filter('pre_wp_mail', '__return_true');
if ($what === 'install') {
    require_once ABSPATH . 'wp-admin/includes/upgrade.php';
    wp_install('A blog', 'admin', 'admin@example.org', true, '', 'a long word of passage');
    exit;
}
