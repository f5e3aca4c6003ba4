import { type Grammars, paths, plain, sameGrammar, spellOptions, verbs } from '../grammar.ts'

const cassandra = 'nodetool, Apache Cassandra 4.1'
const bounded = { when: 'always', unless: ['-n', '--rowcount'], instead: { drop: [], add: ['-n', '2'] } } as const

/** Requires a time limit for a read of more than one system table, because the server has none. */
const ownTables = {
  value:
    '(?<!\\w)(?:[fF][rR][oO][mM]\\s+(?![(]|system\\.)|[fF][rR][oO][mM]\\s+[\\w.]+(?:\\s+\\w+){0,2}\\s*,|[jJ][oO][iI][nN]\\s)',
  options: ['--max_execution_time'],
  because: 'may take the server for hours: add --max_execution_time 30',
}

/**
 * Clients of data stores, queues and caches. Code checks the queries of clients that have a query
 * language, and the verbs of control programs.
 */
export const brokers: Grammars = {
  nodetool: {
    // Excluded: -pw and -pwf, which are passwords. Any verb that is not listed changes the ring or
    // writes.
    manual: cassandra,
    style: 'word',
    options: spellOptions({
      host: '-h --host',
      number: '-p --port',
      flag: '-r -H --human-readable --resolve-ip',
      name: '-F --format',
    }),
    commands: {
      ...sameGrammar(
        `status info tpstats compactionstats netstats ring describecluster gossipinfo tablestats cfstats tablehistograms cfhistograms proxyhistograms
        getlogginglevels listpendinghints version gcstats failuredetector listsnapshots getendpoints getsstables compactionhistory clientstats describering
        getcompactionthroughput getcompactionthreshold getconcurrentcompactors getconcurrentviewbuilders getconcurrency getinterdcstreamthroughput
        getmaxhintwindow getstreamthroughput gettimeout gettraceprobability getseeds getbatchlogreplaythrottle rangekeysample viewbuildstatus
        statusgossip statusbinary statusbackup statushandoff statusautocompaction datapaths getfullquerylog getauditlog help`,
        plain(cassandra),
      ),
      repair_admin: { commands: { list: plain(cassandra) } },
    },
  },
  cqlsh: {
    // Excluded: -f runs a file, -p is a password, --cqlshrc names other settings.
    manual: 'cqlsh, Apache Cassandra 4.1',
    style: 'word',
    options: spellOptions({
      cql: '-e --execute',
      flag: '--no-color --version',
      number: '--connect-timeout --request-timeout',
      name: '-u -k --username --keyspace',
    }),
    operands: { first: ['host', 'number'] },
    requires: ['-e', '--execute', '--version'],
    refuses: ['^system_auth$'],
  },
  ...sameGrammar('clickhouse-client', {
    // Excluded: a file of queries, an external table, a configuration, several queries at once.
    manual: 'clickhouse-client, ClickHouse 23.8',
    style: 'word',
    options: spellOptions({
      'sql:clickhouse': '-q --query',
      host: '-h --host',
      number: '--port --max_threads --receive_timeout --connect_timeout --readonly',
      wait: '--max_execution_time',
      name: '-u --user -d --database -f --format',
      flag: '--version -V -E --vertical -t --time --secure',
    }),
    requires: ['-q', '--query', '--version', '-V'],
    refuses: ['^system$'],
    needs: ownTables,
  }),
  clickhouse: {
    manual: 'clickhouse-client, ClickHouse 23.8',
    style: 'word',
    commands: {
      client: {
        options: spellOptions({
          'sql:clickhouse': '-q --query',
          host: '-h --host',
          number: '--port',
          wait: '--max_execution_time',
          name: '-u --user',
        }),
        requires: ['-q', '--query'],
        needs: ownTables,
      },
    },
  },
  ...sameGrammar('mongosh mongo', {
    // Excluded: a file, --shell and further files, which run code. A second --eval is checked like
    // the first.
    manual: 'mongosh 2.1: Options; mongosh Methods',
    style: 'word',
    options: spellOptions({
      mongosh: '--eval',
      flag: '--quiet --norc --version --json --json=relaxed --json=canonical --tls',
      host: '--host',
      number: '--port',
    }),
    operands: { first: ['text'] },
    requires: ['--eval', '--version'],
    refusesOperands: ['^(?!mongodb://(localhost|127\\.0\\.0\\.1)(:\\d+)?(/\\w*)?$)(?![\\w-]+$)'],
  }),
  ...sameGrammar('mongostat mongotop', {
    manual: 'mongostat, mongotop: MongoDB Database Tools 100.9',
    options: spellOptions({
      number: '-n --rowcount --port',
      host: '-h --host',
      flag: '--discover --humanReadable --noheaders --json --all --locks --version',
    }),
    operands: { first: ['number'] },
    endless: bounded,
  }),
  memcstat: {
    manual: 'memcstat(1), libmemcached 1.1',
    options: spellOptions({ text: '--servers' }),
    refuses: ['^(?!(localhost|127\\.0\\.0\\.1)(:\\d+)?$)'],
  },
  vault: {
    // Excluded: contents, tokens, and templates of policies, because they are secret.
    manual: 'vault(1), 1.15',
    style: 'word',
    options: spellOptions({
      url: '-address',
      flag: '-detailed -format=json -format=table -format=yaml',
      name: '-format -namespace',
    }),
    commands: {
      ...paths(
        `status, version, operator members, operator raft list-peers, operator raft autopilot state|get-config, operator key-status, token capabilities,
         audit|auth|secrets|policy|namespace|plugin list, policy read`,
        plain('vault(1), 1.15'),
      ),
      // Reads the server's own state, and names of entries.
      read: plain(
        'vault read, 1.15',
        {},
        {
          operands: { first: ['text'], min: 1 },
          refuses: [
            '^(?!(json|table|yaml|[\\w-]+/?)$|/?sys/(health|seal-status|leader|ha-status|key-status|replication/(status|dr/status|performance/status)|storage/raft/(configuration|autopilot/(state|configuration))|license/status|version-history|quotas/config|internal/counters/activity)/?$)',
          ],
        },
      ),
      list: plain(
        'vault list, 1.15',
        {},
        {
          operands: { first: ['text'], min: 1 },
          refuses: [
            '^(?!(json|table|yaml)$|/?(auth/[\\w-]+/(roles?|users|groups)|sys/(policies/acl|policy|namespaces))/?$)',
          ],
        },
      ),
      kv: {
        commands: {
          list: plain('vault kv list, 1.15', spellOptions({ name: '-mount' }), {
            operands: { first: ['text'], min: 1 },
          }),
        },
      },
    },
  },
  varnishstat: {
    manual: 'varnishstat(1), Varnish 7.1',
    options: spellOptions({ flag: '-1 -j -x -l', text: '-f', name: '-n', number: '-t' }),
    requires: ['-1', '-j', '-x', '-l'],
  },
  varnishadm: {
    // Excluded: -T connects to another server, and -S reads a key. varnishadm sends its arguments
    // as one line.
    manual: 'varnishadm(1), varnish-cli(7), Varnish 7.1',
    options: spellOptions({ name: '-n', number: '-t' }),
    commands: sameGrammar(
      'backend.list ban.list status vcl.list panic.show ping banner storage.list pid vcl.deps param.show',
      {
        options: spellOptions({ flag: '-p -j' }),
        operands: { rest: 'text' },
        refusesOperands: ['[^\\w.*:-]'],
      },
    ),
  },
  ...sameGrammar('valkey-cli keydb-cli', {
    manual: 'valkey-cli, Valkey 7.2',
    commands: paths('ping, info, dbsize, role, lastsave', plain('Valkey 7.2')),
    options: spellOptions({ host: '-h', number: '-p -n' }),
  }),
  'unbound-control': verbs(
    'unbound-control(8), Unbound 1.17',
    'status|stats_noreset|list_forwards|list_stubs|list_local_zones|dump_infra|lookup',
  ),
  rndc: verbs('rndc(8), BIND 9.18', 'status|zonestatus'),
  pdns_control: verbs('pdns_control(1), 4.7', 'ping|rping|uptime|version|list|ccounts|get-zone-counts'),
  knotc: verbs('knotc(8), Knot DNS 3.2', 'status|stats|zone-status|conf-check', spellOptions({ flag: '-e -x' })),
  doveadm: verbs(
    'doveadm(1), Dovecot 2.3',
    'who, replicator status, log errors, process status, quota get, mailbox list|status, instance list, director status, service status',
    spellOptions({ text: '-u -f -t', flag: '-1' }),
  ),
  postmap: { manual: 'postmap(1)', options: spellOptions({ flag: '-V' }), requires: ['-V'] },
  qshape: {
    manual: 'qshape(1), Postfix 3.7',
    options: spellOptions({ flag: '-s -p -l', number: '-b -t -w -m' }),
    operands: { rest: 'name' },
  },
  ...sameGrammar('exim exim4', {
    // Excluded: -be and the like, which expand strings and so run programs; -M and -q, which change
    // queued messages.
    manual: 'exim(8), Exim 4.96',
    style: 'word',
    options: spellOptions({ flag: '-bp -bpc -bpr -bpu -bV' }),
    requires: ['-bp', '-bpc', '-bpr', '-bpu', '-bV'],
  }),
  celery: { manual: 'celery, 5.3', options: spellOptions({ flag: '--version' }), requires: ['--version'] },
  pgbackrest: {
    manual: 'pgbackrest(1), 2.48',
    options: spellOptions({ name: '--stanza --output --set --repo' }),
    commands: paths('info, version', {}),
  },
  barman: verbs(
    'barman(1), 3.5',
    'list-servers|list-server|list-backups|list-backup|show-backup|show-server|status|replication-status|check',
    spellOptions({ flag: '--minimal --nagios', name: '-f --format' }),
  ),
  mysqldumpslow: {
    manual: 'mysqldumpslow(1), MySQL 8.0',
    style: 'word',
    options: spellOptions({ flag: '-a -r -v', name: '-s -t -n', text: '-g' }),
    operands: { rest: 'file', min: 1 },
  },
}

const nats = 'nats, natscli 0.1'
const kafka = 'Apache Kafka 3.6'

/** Queues and logs of messages. The messages themselves are not shown. */
export const queues: Grammars = {
  nats: {
    // Excluded: -s names another server, a context holds credentials; pub, sub, next, get and other
    // verbs change something or take messages.
    manual: nats,
    options: spellOptions({
      flag: '--json -j --names -n --all -a --no-select',
      text: '--sort --top --subject --filter',
    }),
    commands: {
      ...paths(
        `stream ls|info|state|report|subjects, consumer ls|info|report, account info, rtt, server list|ls|info|ping, server report jetstream|connections|accounts|conns|js|gateways|routes,
         server check connection|jetstream|stream|consumer|meta, kv ls|info, object ls|info`,
        plain(nats),
      ),
    },
  },
  rpk: verbs(
    'rpk, Redpanda 23.3',
    `cluster health|info|metadata|status, cluster logdirs describe, cluster maintenance status, cluster partitions list, topic list|describe, group list|describe,
     version, cluster config status, redpanda admin brokers list`,
    spellOptions({
      flag: '-d --detailed -i -r --internal -p --print-partitions -s --print-summary -a --print-all',
      text: '--format',
    }),
  ),
  ...sameGrammar('kafka-configs kafka-configs.sh', {
    manual: `kafka-configs, ${kafka}`,
    style: 'word',
    options: spellOptions({
      flag: '--describe --all --broker-defaults --entity-default',
      host: '--bootstrap-server',
      name: '--entity-type --entity-name --topic --broker --group --client-metrics',
    }),
    requires: ['--describe'],
    // Refuses users, whose settings hold credentials.
    refuses: ['^users?$'],
  }),
  ...sameGrammar('kafka-broker-api-versions kafka-broker-api-versions.sh', {
    manual: `kafka-broker-api-versions, ${kafka}`,
    style: 'word',
    options: spellOptions({ host: '--bootstrap-server' }),
    requires: ['--bootstrap-server'],
  }),
  ...sameGrammar('kafka-log-dirs kafka-log-dirs.sh', {
    manual: `kafka-log-dirs, ${kafka}`,
    style: 'word',
    options: spellOptions({ flag: '--describe', host: '--bootstrap-server', text: '--broker-list --topic-list' }),
    requires: ['--describe'],
  }),
  ...sameGrammar('kafka-get-offsets kafka-get-offsets.sh', {
    manual: `kafka-get-offsets, ${kafka}`,
    style: 'word',
    options: spellOptions({ host: '--bootstrap-server', text: '--topic --partitions --time' }),
    requires: ['--bootstrap-server'],
  }),
  ...sameGrammar('kafka-acls kafka-acls.sh', {
    manual: `kafka-acls, ${kafka}`,
    style: 'word',
    options: spellOptions({ flag: '--list', host: '--bootstrap-server', text: '--topic --group' }),
    requires: ['--list'],
  }),
  // Excluded: abort and force-terminate change transactions; upgrade, downgrade and unregister also
  // change something.
  ...sameGrammar('kafka-transactions kafka-transactions.sh', {
    manual: `kafka-transactions, ${kafka}`,
    style: 'word',
    options: spellOptions({ host: '--bootstrap-server' }),
    commands: sameGrammar('list describe find-hanging', {
      options: spellOptions({
        text: '--transactional-id --topic',
        number: '--broker-id --max-transaction-timeout --partition',
      }),
    }),
  }),
  ...sameGrammar('kafka-features kafka-features.sh', {
    manual: `kafka-features, ${kafka}`,
    style: 'word',
    options: spellOptions({ host: '--bootstrap-server' }),
    commands: { describe: {} },
  }),
  ...sameGrammar('kafka-cluster kafka-cluster.sh', {
    manual: `kafka-cluster, ${kafka}`,
    style: 'word',
    commands: { 'cluster-id': { options: spellOptions({ host: '--bootstrap-server' }) } },
  }),
  ...sameGrammar('kafka-metadata-quorum kafka-metadata-quorum.sh', {
    manual: `kafka-metadata-quorum, ${kafka}`,
    style: 'word',
    options: spellOptions({ host: '--bootstrap-server' }),
    commands: { describe: { options: spellOptions({ flag: '--status --replication' }) } },
  }),
  ...sameGrammar('kcat kafkacat', {
    // Excluded: -P produces, -G commits, -F and -X are settings. Consuming without a group commits
    // nothing, and ends with -e or a count. Without a mode the program produces its input.
    manual: 'kcat(1), 1.7',
    options: spellOptions({ flag: '-L -C -e -q -J -u', host: '-b', text: '-t -o', number: '-p', count: '-c' }),
    requires: ['-L', '-C'],
    // Adds a count, because with -e alone it prints a whole topic.
    endless: { when: ['-C'], unless: ['-c'], instead: { drop: [], add: ['-c', '10'] } },
    refuses: ['^end$'],
  }),
  ...sameGrammar(
    'rabbitmq-queues',
    verbs(
      'rabbitmq-queues(8), RabbitMQ 3.12',
      'quorum_status|check_if_node_is_quorum_critical|check_if_new_quorum_queue_replicas_have_finished_initial_sync|help',
      spellOptions({ flag: '-q --quiet', name: '-p --vhost' }),
    ),
  ),
  'rabbitmq-plugins': verbs(
    'rabbitmq-plugins(8), RabbitMQ 3.12',
    'list|directories|is_enabled|version',
    spellOptions({ flag: '-q -v -m -E -e --quiet' }),
  ),
  rabbitmqadmin: {
    // Excluded: -H connects to another host; get takes messages unless they are put back; export
    // prints hashes.
    manual: 'rabbitmqadmin, RabbitMQ 3.12: Management Command Line Tool',
    options: spellOptions({ name: '-V --vhost -f --format', text: '-S --sort' }),
    commands: sameGrammar('list show', {
      ...plain('rabbitmqadmin'),
      only: [
        {
          value: '',
          first: '^(queues|exchanges|bindings|channels|connections|consumers|nodes|vhosts|overview|policies)$',
        },
      ],
      operands: { rest: 'name', min: 1 },
    }),
  },
  'pulsar-admin': verbs(
    'pulsar-admin, Apache Pulsar 3.1',
    'brokers list|leader-broker, topics list|stats|partitioned-stats|stats-internal|subscriptions, tenants list|get, clusters list, namespaces list|topics',
    spellOptions({ text: '--subscription' }),
  ),
}
