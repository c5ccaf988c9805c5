<?php
// MediaWiki takes the pages of a directory, each an edit of its own with its deferred updates, as its importTextFiles.php does.
//   take_pages.php --conf LOCALSETTINGS DIRECTORY ROUND      prints "took pages SECONDS"
require_once '/usr/share/mediawiki/maintenance/Maintenance.php';

class TakePages extends Maintenance {
    public function __construct() {
        parent::__construct();
        $this->addArg('directory', 'Text files, one a page');
        $this->addArg('round', 'The number of this turn');
    }

    public function execute() {
        $user = User::newSystemUser('Maintenance script', ['steal' => true]);
        $files = glob($this->getArg(0) . '/*.txt');
        $begin = microtime(true);
        foreach ($files as $file) {
            $title = Title::newFromText(basename($file, '.txt'));
            $page = MediaWiki\MediaWikiServices::getInstance()->getWikiPageFactory()->newFromTitle($title);
            $status = $page->doUserEditContent(ContentHandler::makeContent(file_get_contents($file), $title), $user, 'turn ' . $this->getArg(1));
            if (!$status->isOK()) $this->fatalError((string) $status);
            DeferredUpdates::doUpdates();
        }
        echo 'took pages ', microtime(true) - $begin, "\n";
    }
}
$maintClass = TakePages::class;
require_once RUN_MAINTENANCE_IF_MAIN;
