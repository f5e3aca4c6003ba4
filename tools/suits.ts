/**
 * Maps words in alerts to the tool that repairs the fault behind them, for incidents without a
 * runbook. Decides only which tools are shown first; the policy is checked for each call. The words
 * are from public collections of alert rules (node_exporter, blackbox, cAdvisor, kube-prometheus).
 */
const suits: readonly [tool: string, says: RegExp][] = [
  ['container_restart', /container|docker|podman/],
  ['service_start', /timer|not running|inactive|is down|stopped|never ran|missed/],
  [
    'service_restart',
    /descriptor|hang|hung|stuck|unresponsive|not respond|leak|clock|ntp|chrony|synchroni|queue|backlog|worker|reload/,
  ],
  ['proc_kill', /zombie|runaway|process|sessions?\b|fork|orphan|busy loop/],
  ['git_revert', /deploy|release|commit|config\w* (?:test|check|reload|syntax)|rollback|regression/],
  ['pkg_install', /package|module|librar|dependenc|command not found|no such program/],
]

const maxSuited = 2

/**
 * Maps words in alerts to the reading tool to use first, among reading tools that few incidents
 * need.
 */
const looks: readonly [tool: string, says: RegExp][] = [
  ['proc_list', /process|cpu\b|load\b|memory|oom\b|port\b|session|zombie|fork|thread|descriptor/],
  ['disk_usage', /disk|space\b|inode|file ?system|volume|storage|quota/],
  [
    'service_status',
    /service|unit\b|systemd|daemon|worker|timer|agent|is down|not running|not answer|health check|restart/,
  ],
  ['fs_read', /config|file\b|certificate|deploy|release|syntax|module/],
  ['describe_metrics', /metric|target|exporter|scrape|rate\b|quer(?:y|ies)/],
]

/**
 * Lists the reading tools that can come later: all tools of `looks` except those that suit the
 * words of the alert. Empty if no tool suits the words, because then nothing is known.
 */
export function unsuitedLooks(words: string): string[] {
  const text = spaced(words)
  const isSuited = (says: RegExp) => says.test(text)
  return looks.some(([, says]) => isSuited(says)) ? looks.flatMap(([tool, says]) => (isSuited(says) ? [] : [tool])) : []
}

/**
 * Lists at most two tools that suit the words of an alert, in the order of the best match, then of
 * the table.
 */
export function suitedTools(words: string): string[] {
  const text = spaced(words)
  return suits
    .map(([tool, says]) => ({ tool, hits: text.match(new RegExp(says, 'g'))?.length ?? 0 }))
    .filter(({ hits }) => hits > 0)
    .sort((a, b) => b.hits - a.hits)
    .slice(0, maxSuited)
    .map(({ tool }) => tool)
}

const spaced = (words: string): string =>
  words
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase()
