import type { Grammars } from '../grammar.ts'
import { each, paths, plain, spell, verbs } from './spell.ts'

const cassandra = 'nodetool, Apache Cassandra 4.1'
const bounded = { when: 'always', unless: ['-n', '--rowcount'], instead: { drop: [], add: ['-n', '2'] } } as const

/** Data stores, queues and caches: clients whose question is a separate language are read strictly, control programs by their verbs. */
export const brokers: Grammars = {
  nodetool: {
    // -pw and -pwf are passwords; a verb that is not here changes the ring or writes.
    manual: cassandra,
    style: 'word',
    options: spell({ host: '-h --host', number: '-p --port', flag: '-r -H --human-readable --resolve-ip' }),
    commands: {
      ...each(
        `status info tpstats compactionstats netstats ring describecluster gossipinfo tablestats cfstats tablehistograms cfhistograms proxyhistograms
        getlogginglevels version gcstats failuredetector listsnapshots getendpoints getsstables compactionhistory clientstats describering
        getcompactionthroughput getcompactionthreshold getconcurrentcompactors getconcurrentviewbuilders getconcurrency getinterdcstreamthroughput
        getmaxhintwindow getstreamthroughput gettimeout gettraceprobability getseeds getbatchlogreplaythrottle rangekeysample viewbuildstatus
        statusgossip statusbinary statusbackup statushandoff statusautocompaction datapaths getfullquerylog getauditlog help`,
        plain(cassandra),
      ),
      repair_admin: { manual: cassandra, commands: { list: plain(cassandra) } },
    },
  },
  cqlsh: {
    // -f runs a file, -p is a password, --cqlshrc names other settings.
    manual: 'cqlsh, Apache Cassandra 4.1',
    style: 'word',
    options: spell({
      cql: '-e --execute',
      flag: '--no-color --version',
      number: '--connect-timeout --request-timeout',
      name: '-u -k --username --keyspace',
    }),
    operands: { first: ['host', 'number'] },
    requires: ['-e', '--execute', '--version'],
    refuses: ['^system_auth$'],
  },
  ...each('clickhouse-client', {
    // A file of queries, an external table, a configuration and several queries at once are left out.
    manual: 'clickhouse-client, ClickHouse 23.8',
    style: 'word',
    options: spell({
      'sql:clickhouse': '-q --query',
      host: '-h --host',
      number: '--port --max_execution_time --max_threads --receive_timeout --connect_timeout --readonly',
      name: '-u --user -d --database -f --format',
      flag: '--version -V -E --vertical -t --time --secure',
    }),
    requires: ['-q', '--query', '--version', '-V'],
    refuses: ['^system$'],
  }),
  clickhouse: {
    manual: 'clickhouse-client, ClickHouse 23.8',
    style: 'word',
    commands: {
      client: {
        manual: 'clickhouse-client, ClickHouse 23.8',
        options: spell({ 'sql:clickhouse': '-q --query', host: '-h --host', number: '--port', name: '-u --user' }),
        requires: ['-q', '--query'],
      },
    },
  },
  ...each('mongosh mongo', {
    // A file, --shell and further files run code; a second --eval is held against the same rule.
    manual: 'mongosh 2.1: Options; mongosh Methods',
    style: 'word',
    options: spell({
      mongosh: '--eval',
      flag: '--quiet --norc --version --json --json=relaxed --json=canonical --tls',
      host: '--host',
      number: '--port',
    }),
    operands: { first: ['text'] },
    requires: ['--eval', '--version'],
    refusesOperands: ['^(?!mongodb://(localhost|127\\.0\\.0\\.1)(:\\d+)?(/\\w*)?$)(?![\\w-]+$)'],
  }),
  ...each('mongostat mongotop', {
    manual: 'mongostat, mongotop: MongoDB Database Tools 100.9',
    options: spell({
      number: '-n --rowcount --port',
      host: '-h --host',
      flag: '--discover --humanReadable --noheaders --json --all --locks --version',
    }),
    operands: { first: ['number'] },
    endless: bounded,
  }),
  memcstat: {
    manual: 'memcstat(1), libmemcached 1.1',
    options: spell({ text: '--servers' }),
    refuses: ['^(?!(localhost|127\\.0\\.0\\.1)(:\\d+)?$)'],
  },
  vault: {
    // What is kept in it is secret, and so are tokens and templates of policies; -address goes elsewhere.
    manual: 'vault(1), 1.15',
    style: 'word',
    options: spell({ flag: '-detailed -format=json -format=table -format=yaml', name: '-format -namespace' }),
    commands: paths(
      'status, version, operator members, operator raft list-peers, operator raft autopilot state, audit|auth|secrets|policy|namespace|plugin list, policy read',
      plain('vault(1), 1.15'),
    ),
  },
  varnishstat: {
    manual: 'varnishstat(1), Varnish 7.1',
    options: spell({ flag: '-1 -j -x -l', text: '-f', name: '-n', number: '-t' }),
    requires: ['-1', '-j', '-x', '-l'],
  },
  varnishadm: {
    // -T goes elsewhere and -S reads a key. Words are sent as one line.
    manual: 'varnishadm(1), varnish-cli(7), Varnish 7.1',
    options: spell({ name: '-n', number: '-t' }),
    commands: each(
      'backend.list ban.list status vcl.list panic.show ping banner storage.list pid vcl.deps param.show',
      {
        manual: 'varnish-cli(7)',
        options: spell({ flag: '-p -j' }),
        operands: { rest: 'text' },
        refusesOperands: ['[^\\w.*:-]'],
      },
    ),
  },
  ...each('valkey-cli keydb-cli', {
    manual: 'valkey-cli, Valkey 7.2',
    commands: paths('ping, info, dbsize, role, lastsave', plain('Valkey 7.2')),
    options: spell({ host: '-h', number: '-p -n' }),
  }),
  'unbound-control': verbs(
    'unbound-control(8), Unbound 1.17',
    'status|stats_noreset|list_forwards|list_stubs|list_local_zones|dump_infra|lookup',
  ),
  rndc: verbs('rndc(8), BIND 9.18', 'status|zonestatus'),
  pdns_control: verbs('pdns_control(1), 4.7', 'ping|rping|uptime|version|list|ccounts|get-zone-counts'),
  knotc: verbs('knotc(8), Knot DNS 3.2', 'status|stats|zone-status|conf-check', spell({ flag: '-e -x' })),
  doveadm: verbs(
    'doveadm(1), Dovecot 2.3',
    'who, replicator status, log errors, process status, quota get',
    spell({ text: '-u' }),
  ),
  postmap: { manual: 'postmap(1)', options: spell({ flag: '-V' }), requires: ['-V'] },
  qshape: { manual: 'qshape(1), Postfix 3.7', operands: { rest: 'name' } },
  ...each('exim exim4', {
    // -be and the like expand, and expansion runs programs; -M and -q act.
    manual: 'exim(8), Exim 4.96',
    style: 'word',
    options: spell({ flag: '-bp -bpc -bpr -bpu -bV' }),
    requires: ['-bp', '-bpc', '-bpr', '-bpu', '-bV'],
  }),
  celery: { manual: 'celery, 5.3', options: spell({ flag: '--version' }), requires: ['--version'] },
  pgbackrest: {
    manual: 'pgbackrest(1), 2.48',
    options: spell({ name: '--stanza --output --set --repo' }),
    commands: paths('info, version', { manual: 'pgbackrest(1), 2.48' }),
  },
  barman: verbs(
    'barman(1), 3.5',
    'list-servers|list-server|list-backups|list-backup|show-backup|show-server|status|replication-status|check',
    spell({ flag: '--minimal --nagios', name: '-f --format' }),
  ),
  mysqldumpslow: {
    manual: 'mysqldumpslow(1), MySQL 8.0',
    style: 'word',
    options: spell({ flag: '-a -r -v', name: '-s -t -n', text: '-g' }),
    operands: { rest: 'file', min: 1 },
  },
}
