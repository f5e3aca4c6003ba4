/**
 * Alerts' words by the tool that repairs such trouble, for incidents without a runbook. Decides
 * only which tools are shown first; each is judged as any. The words are public rule collections'
 * (node_exporter, blackbox, cAdvisor, kube-prometheus).
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

/** By the look that such an alert wants first, of those that no incident needs as a rule. */
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
 * Looks that an alert's words leave for later: all of these but those that suit. Empty where none
 * suits, since nothing is known then.
 */
export function unsuitedLooks(words: string): string[] {
  const text = spaced(words)
  const isSuited = (says: RegExp) => says.test(text)
  return looks.some(([, says]) => isSuited(says)) ? looks.flatMap(([tool, says]) => (isSuited(says) ? [] : [tool])) : []
}

/** Tools that suit an alert's words, two at most: the best fits, in the table's order. */
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
