import type { Surroundings } from '../surroundings.ts'

/** Who connects and how. */
const mysqlKeys =
  'user password port socket protocol connect_timeout default_character_set ssl_mode ssl_ca ssl_cert ssl_key compress database table'.split(
    ' ',
  )

const mysql: Surroundings = {
  manual: 'mysql(1), MySQL 8.0: option files',
  reach: 'network',
  obeys: '~/.my.cnf, ~/.mylogin.cnf: init-command, pager, tee, plugin-dir, another host',
  conditions: [
    { kind: 'plain_settings', file: '~/.my.cnf', keys: mysqlKeys },
    { kind: 'root_only', files: ['~/.mylogin.cnf'] },
  ],
}

/** Clients of databases and of HTTP. */
export const clients: [string, Surroundings][] = [
  ...['mysql', 'mariadb', 'mysqladmin', 'mariadb-admin', 'mysqlshow', 'mariadb-show'].map(
    (name): [string, Surroundings] => [name, mysql],
  ),
  [
    'psql',
    {
      manual: 'psql(1), PostgreSQL 15: PSQLRC, PSQL_PAGER',
      reach: 'network',
      obeys: '~/.psqlrc: backslash commands that run programs',
      switches: { PSQLRC: '/dev/null', PSQL_PAGER: '', PSQL_HISTORY: '/dev/null' },
    },
  ],
  [
    'sqlite3',
    {
      manual: 'sqlite3(1), SQLite 3.40: -init',
      reach: 'prints',
      obeys: '~/.sqliterc: dot commands that run programs, also where the statement is an argument',
      conditions: [{ kind: 'root_only', files: ['~/.sqliterc', '~/.config/sqlite3/sqliterc'] }],
    },
  ],
  [
    'redis-cli',
    {
      manual: 'redis-cli, Redis 7: REDISCLI_RCFILE',
      reach: 'network',
      obeys: '~/.redisclirc: settings of a session',
      switches: { REDISCLI_RCFILE: '/dev/null', REDISCLI_HISTFILE: '/dev/null' },
    },
  ],
  [
    'mongosh',
    {
      manual: 'mongosh: .mongoshrc.js',
      reach: 'network',
      obeys: '~/.mongoshrc.js: code',
      conditions: [{ kind: 'root_only', files: ['~/.mongoshrc.js', '~/.mongorc.js'] }],
    },
  ],
  [
    'patronictl',
    {
      manual: 'patronictl, Patroni 3.2: -c',
      reach: 'network',
      obeys: '~/.config/patroni/patronictl.yaml, -c: where the cluster is and who is asked',
      conditions: [{ kind: 'root_only', files: ['~/.config/patroni/patronictl.yaml'] }],
      obeysFilesOf: ['-c', '--config-file'],
    },
  ],
  [
    'repmgr',
    {
      manual: 'repmgr(1), repmgr 5.4: -f',
      reach: 'network',
      obeys: 'repmgr.conf of the directory, -f: connections, options of ssh',
      conditions: [{ kind: 'root_only', files: ['repmgr.conf'] }],
      obeysFilesOf: ['-f', '--config-file'],
    },
  ],
  [
    'curl',
    {
      manual: 'curl(1), curl 7.88: -K, CURL_HOME',
      reach: 'network',
      obeys: '~/.curlrc: any option, files to write and other hosts among them',
      conditions: [{ kind: 'root_only', files: ['~/.curlrc', '~/.config/curlrc', '~/.config/.curlrc'] }],
    },
  ],
  [
    'wget',
    {
      manual: 'wget(1), GNU Wget 1.21: startup file',
      reach: 'network',
      obeys: '~/.wgetrc: any option; ~/.netrc: names and passwords for a host',
      conditions: [{ kind: 'root_only', files: ['~/.wgetrc', '~/.netrc'] }],
    },
  ],
  [
    'dig',
    {
      manual: 'dig(1), BIND 9.18: .digrc',
      reach: 'network',
      obeys: '~/.digrc: any option, another server and a list of names among them',
      conditions: [{ kind: 'root_only', files: ['~/.digrc'] }],
    },
  ],
]

/** Reads settings of clients that say who connects and to what: why a read must not obey them, or null. */

/**
 * A kubeconfig as YAML has been read. A program for credentials, a file whose content is sent as a token, and a proxy are more than
 * settings; certificates are only used to connect.
 */
export function oddKubeconfig(config: unknown): string | null {
  if (config === null || config === undefined) return null
  if (typeof config !== 'object') return 'it is no kubeconfig'
  return oddKey(config, new Set(['exec', 'auth-provider', 'tokenfile', 'proxy-url']))
}

function oddKey(value: unknown, odd: ReadonlySet<string>): string | null {
  if (value === null || typeof value !== 'object') return null
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value) && odd.has(key.toLowerCase())) return key
    const found = oddKey(inner, odd)
    if (found !== null) return found
  }
  return null
}

/** Keys of `~/.docker/config.json` that change neither where the client goes nor what it starts when it looks. */
const dockerKeys = new Set(
  (
    'auths credsStore credHelpers HttpHeaders psFormat imagesFormat networksFormat volumesFormat statsFormat servicesFormat tasksFormat ' +
    'nodesFormat serviceInspectFormat secretFormat configFormat pluginsFormat detachKeys experimental debug'
  ).split(' '),
)

export function oddDockerSettings(settings: unknown): string | null {
  if (settings === null || typeof settings !== 'object' || Array.isArray(settings)) return 'it is no object'
  for (const [key, value] of Object.entries(settings)) {
    if (key === 'currentContext' && (value === '' || value === 'default')) continue
    if (!dockerKeys.has(key)) return key
  }
  return null
}

/**
 * The lines of a file of `key = value` in sections. A prefix of a key may mean the key, so what is not written in full is not known. A host is
 * this machine.
 */
export function oddSetting(text: string, keys: readonly string[]): string | null {
  for (const line of text.split(/\r\n|[\r\n]/).map((line) => line.trim())) {
    if (line === '' || /^[#;]/.test(line) || /^\[[\w .:@/-]+\]$/.test(line)) continue
    const [name = '', value = ''] = line.split(/=(.*)/s).map((part) => part.trim())
    const key = name.toLowerCase().replaceAll('-', '_')
    const isHere = key === 'host' && /^["']?(?:localhost|127\.0\.0\.1|::1)["']?$/.test(value)
    if (!keys.includes(key) && !isHere) return name
  }
  return null
}
