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
