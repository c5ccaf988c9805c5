<?php
// MediaWiki does what its users do, and prints what it sees: "answer, tab, step" a line. No answer depends on the hour or on chance.
//   walk.php --conf LOCALSETTINGS [--searches]      --searches: nothing is written, only searches
require_once '/usr/share/mediawiki/maintenance/Maintenance.php';

use MediaWiki\MediaWikiServices;

class Walk extends Maintenance {
    private const WORDS = ['river', 'weir', 'flood', 'mill', 'stone', 'bridge', 'lock', 'canal', 'sluice', 'basin', 'café', 'Über', '東京', 'running', 'boats'];

    public function __construct() {
        parent::__construct();
        $this->addOption('searches', 'Nothing is written');
    }

    private function step(string $name, $answer): void {
        $text = json_encode($answer, JSON_UNESCAPED_UNICODE);
        $text = preg_replace('/20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\dZ|\b202[5-9]\d{10}\b/', 'TIME', $text);
        echo $text, "\t", $name, "\n";
    }

    private function call(array $given): array {
        $context = RequestContext::getMain();
        $context->setUser($this->user);
        // What only asks has no token.
        if ($given['action'] !== 'query' && $given['action'] !== 'opensearch' && $given['action'] !== 'parse') {
            $given['token'] = $this->user->getEditToken($given['action'] === 'watch' ? 'watch' : '', $context->getRequest());
        }
        $api = new ApiMain(new DerivativeRequest($context->getRequest(), $given, true), true);
        try {
            $api->execute();
        } catch (ApiUsageException $error) {
            return ['error' => $error->getStatusValue()->getErrors()[0]['message'] instanceof Message ? $error->getStatusValue()->getErrors()[0]['message']->getKey() : 'error'];
        }
        DeferredUpdates::doUpdates();
        return $api->getResult()->getResultData(null, ['Strip' => 'all']);
    }

    private function edit(string $title, string $text, string $summary = ''): void {
        $title = Title::newFromText($title);
        $page = MediaWikiServices::getInstance()->getWikiPageFactory()->newFromTitle($title);
        $status = $page->doUserEditContent(ContentHandler::makeContent($text, $title), $this->user, $summary);
        if (!$status->isGood()) $this->step("edit of $title", (string) $status);
        DeferredUpdates::doUpdates();
    }

    private function text(int $seed): string {
        $text = '';
        for ($i = 0; $i < 40 + $seed * 13 % 200; $i++) {
            $seed = ($seed * 1103515245 + 12345) % 2147483648;
            $word = self::WORDS[intdiv($seed, 65536) % (1 + intdiv($seed, 7) % count(self::WORDS))];
            $text .= match ($seed % 37) { 0 => "[[Page " . $seed % 60 . "|$word]] ", 1 => "\n\n== $word ==\n", 2 => "[[Category:C" . $seed % 5 . "]] ", default => "$word " };
        }
        return $text;
    }

    public function execute() {
        // A minute goes by with each look at the clock, so that nothing depends on how long work takes.
        $seconds = 1500000000;
        Wikimedia\Timestamp\ConvertibleTimestamp::setFakeTime(function () use (&$seconds) { return $seconds += 60; });
        $services = MediaWikiServices::getInstance();
        $this->user = $services->getUserFactory()->newFromName('Admin');
        if (!$this->hasOption('searches')) $this->writes();
        $this->searches();
        foreach (['categorymembers' => ['cmtitle' => 'Category:C1'], 'backlinks' => ['bltitle' => 'Page 7'], 'allpages' => ['apfrom' => 'Page 3'], 'allcategories' => ['acprop' => 'size'],
            'prefixsearch' => ['pssearch' => 'Pag'], 'querypage' => ['qppage' => 'Wantedpages'], 'exturlusage' => [], 'alllinks' => ['alunique' => 1], 'protectedtitles' => []] as $list => $given) {
            $this->step("list of $list", $this->call(['action' => 'query', 'list' => $list] + array_map('strval', $given)));
        }
        $this->step('statistics', $this->call(['action' => 'query', 'meta' => 'siteinfo', 'siprop' => 'statistics']));
    }

    private function writes(): void {
        for ($i = 0; $i < 60; $i++) $this->edit("Page $i", $this->text($i), "made $i");
        for ($i = 0; $i < 60; $i += 3) $this->edit("Page $i", $this->text($i + 1000), "changed $i");
        for ($i = 0; $i < 20; $i++) $this->edit("Talk:Page $i", "On page $i: " . $this->text($i + 2000));
        $this->step('API: edit', $this->call(['action' => 'edit', 'title' => 'By API', 'text' => 'river [[Page 1]]', 'summary' => 's'])['edit']['result'] ?? null);
        $this->step('API: edit in conflict', $this->call(['action' => 'edit', 'title' => 'By API', 'text' => 'x', 'createonly' => '1']));
        $this->step('API: move', $this->call(['action' => 'move', 'from' => 'Page 5', 'to' => 'Moved 5', 'movetalk' => '1']));
        $this->step('API: delete', $this->call(['action' => 'delete', 'title' => 'Page 9']));
        $this->step('API: undelete', $this->call(['action' => 'undelete', 'title' => 'Page 9']));
        $this->step('API: delete again', $this->call(['action' => 'delete', 'title' => 'Page 11'])['delete']['title'] ?? null);
        $this->step('API: protect', $this->call(['action' => 'protect', 'title' => 'Page 2', 'protections' => 'edit=sysop', 'expiry' => 'infinite'])['protect']['title'] ?? null);
        $this->step('API: watch', $this->call(['action' => 'watch', 'titles' => 'Page 2|Page 3']));
        $this->step('API: history', array_map(fn($page) => is_array($page) ? ($page['revisions'] ?? null) : null, $this->call(['action' => 'query', 'prop' => 'revisions', 'titles' => 'Page 6', 'rvlimit' => '10', 'rvprop' => 'comment'])['query']['pages'] ?? []));
        $this->step('API: parse', strlen($this->call(['action' => 'parse', 'page' => 'Page 3', 'prop' => 'links|categories'])['parse']['title'] ?? ''));
        $this->step('API: recent changes', array_map(fn($c) => [$c['type'], $c['title']], array_filter($this->call(['action' => 'query', 'list' => 'recentchanges', 'rclimit' => '200'])['query']['recentchanges'] ?? [], 'is_array')));
        $this->step('API: absent', $this->call(['action' => 'query', 'titles' => 'No such page|Page 1']));
    }

    private function searches(): void {
        $engine = MediaWikiServices::getInstance()->newSearchEngine();
        $engine->setLimitOffset(500, 0);
        foreach (['river', 'weir flood', '"mill stone"', 'bridge -canal', 'boat*', 'café', '東京', 'sluice', 'the', 'zzz', 'Page', '+river +lock', 'running boats'] as $term) {
            foreach (['searchText', 'searchTitle'] as $way) {
                $set = $engine->$way($term);
                $set = $set instanceof Status ? $set->getValue() : $set;
                $titles = [];
                if ($set) foreach ($set as $result) $titles[] = $result->getTitle()->getPrefixedText();
                // Without an ORDER BY by relevance its order is the engine's affair.
                sort($titles);
                $this->step("$way $term", [$set ? $set->getTotalHits() : null, $titles]);
            }
        }
        $this->step('API: search', $this->call(['action' => 'query', 'list' => 'search', 'srsearch' => 'weir', 'srlimit' => '500'])['query']['searchinfo'] ?? null);
        $this->step('opensearch', $this->call(['action' => 'opensearch', 'search' => 'Page 1']));
    }
}
$maintClass = Walk::class;
require_once RUN_MAINTENANCE_IF_MAIN;
