/** Words without content: articles, pronouns, forms of "be" and "have", verbs of telling. */
export const neutral = new Set(
  `a an the this that these those it its itself they their them he she we i our my us you your who whose which what there here
  is are was were be been being am has have had having do does did s
  of on in at to from with by for as into onto per via and or but also both where
  shows show showed shown says say said reads read reports report reported tells tell told gives gave states stated lists listed returned returns
  contains contain contained named called according row rows result results output answer answers look looked seen found
  node nodes host hosts shard shards vm vms guest server machine device instance value field line lines
  now currently utc while percent`
    .split(/\s+/)
    .filter(Boolean),
)

/**
 * Words that people use for a value. For yes or no the key is the word; for a number the word names
 * what is counted.
 */
export const valueWords: Record<string, string> = {
  nominal: 'healthy well ok',
  healthy: 'nominal well ok',
  ok: 'well',
  critical: 'ill',
  degraded: 'ill degradation',
  active: 'running runs run',
  running: 'runs run up alive',
  exited: 'ended stopped',
  dead: 'stopped ended',
  inactive: 'stopped',
  firing: 'fires fire',
  resolved: 'ended over',
  held: 'worked succeeded',
  up: 'running online',
  r: 'running runs run',
  t: 'stopped',
  z: 'zombie defunct',
}
export const yesWords: Record<string, string> = { running: 'runs run up alive', ended: 'gone over', truncated: 'cut' }
export const noWords: Record<string, string> = {
  running: 'stopped down',
  reachable: 'unreachable',
  enabled: 'disabled',
}

/** Full words for short keys, and words for what a key counts. */
export const keySynonyms: Record<string, string> = {
  mem: 'memory',
  memory: 'ram',
  ram: 'memory',
  cpu: 'processor',
  conn: 'connections',
  req: 'requests',
  requests: 'serves served',
  err: 'errors',
  error: 'errors',
  ratio: 'uses used usage share',
  percent: 'uses used usage share',
  used: 'uses usage full',
  free: 'available left',
  available: 'free left',
  avail: 'available free left',
  use: 'used full',
  lag: 'lags lagged behind replication',
  uptime: 'up',
  pid: 'process runs',
  conf: 'configuration config',
  config: 'configuration',
  dir: 'directory',
  util: 'utilisation utilization usage',
  max: 'most maximum peak peaked highest',
  min: 'least minimum lowest',
  mean: 'average averaged',
  last: 'latest newest',
  avg: 'average averaged',
  repl: 'replication',
  limit: 'allows allowed may',
  started: 'since began',
  starts: 'started since began begins fired fires firing',
  ends: 'ended over until',
  first: 'began begins started since from',
  changed: 'jumped rose fell dropped went',
  count: 'times',
  ended: 'gone',
  owner: 'owned belongs',
  uid: 'owner owned belongs user',
  mode: 'permissions',
  commit: 'committed commits',
  author: 'by',
}

/** Words that fit the rows of a program or tool, whatever the rows contain. */
export const sourceWords: [RegExp, string][] = [
  [/(?<![a-z])df(?![a-z])|disk_usage/, 'used full disk filesystem space'],
  [/(?<![a-z])(?:ps|top|pgrep)(?![a-z])|proc_list/, 'process processes runs running pid uses'],
  [/(?<![a-z])(?:ss|netstat|lsof)(?![a-z])/, 'port listens listening socket address process'],
  [/journalctl|search_logs|logs?(?![a-z])/, 'log logs logged journal line lines'],
  [/(?<![a-z])(?:cat|head|tail)(?![a-z])|fs_read|http_read/, 'file page'],
  [/fs_list|(?<![a-z])ls(?![a-z])|fs_stat|(?<![a-z])stat(?![a-z])/, 'file files directory'],
  [/git/, 'commit commits committed history'],
  [/alert/, 'alert alerts'],
  [/quer(?:y|ies)_metrics|metrics/, 'metric series'],
]

/** Words of a key that limit its number to a part of the whole, with their synonyms. */
export const keyQualifiers: Record<string, string> = {
  per: 'rps qps rate',
  free: 'available left remaining',
  available: 'free left remaining',
  avail: 'available free left',
  idle: '',
  unused: 'free',
  failed: 'failures fail errors',
  refused: '',
  rejected: '',
  dropped: '',
  denied: '',
  lost: '',
  retried: 'retries',
  wanted: 'should desired',
  desired: 'should wanted',
  planned: 'plan',
  requested: 'requests',
  ready: '',
  waiting: 'waits wait',
  pending: '',
  blocked: 'blocks',
  before: 'ago earlier previously yesterday week day from',
  previous: 'before earlier',
  mean: 'average averaged',
  avg: 'average averaged mean',
  warn: 'warning limit threshold',
  crit: 'critical limit threshold',
  above: 'limit threshold',
  below: 'limit threshold',
  sent: 'sends send',
  received: 'receives receive',
  written: 'writes wrote write',
  read: 'reads',
}
