import { type Grammar, type Grammars, sameGrammar, spellOptions } from '../grammar.ts'
import { settingsDirectory } from '../settings-directory.ts'

const mysqlConnection = {
  // Excluded: -p with a value, which shows a password to everybody; --defaults-file and
  // --plugin-dir, which read and load files.
  host: '-h --host',
  number: '-P --port --connect-timeout --connect_timeout',
  name: '-u --user --protocol',
}

const admin: Grammar = { manual: 'mysqladmin(1)' }

/**
 * Adds the names in upper case, because redis-cli accepts the words of a command in either case.
 */
const redis = (names: string, grammar: Grammar) => ({
  ...sameGrammar(names, grammar),
  ...sameGrammar(names.toUpperCase(), grammar),
})
const plain = (operands?: Grammar['operands']): Grammar => ({
  manual: 'Redis 7 commands',
  ...(operands ? { operands } : {}),
})

/** Beginnings of names of settings that hold no password. */
const redisSettings =
  'maxmemory|maxclients|save|append|timeout|slowlog|client-|hz|databases|port|bind|dir|dbfilename|loglevel|logfile|repl-|replica-|min-replicas|tcp-|stop-writes|rdb|lazyfree|active|cluster-|notify|hash-|list-|set-|zset-|stream-|latency|io-threads|daemonize|protected-mode|oom-|lua-'

/**
 * Clients of databases. The inspector of the query language judges the query, which is required.
 */
export const databases: Grammars = {
  etcdctl: {
    manual: 'etcdctl(1), etcd 3.5',
    options: spellOptions({
      flag: '-w=json -w=table --write-out=table --write-out=json',
      name: '-w --write-out',
      text: '--command-timeout --dial-timeout',
      urls: '--endpoints',
      credential: '--cacert --cert --key',
    }),
    commands: {
      alarm: { commands: sameGrammar('list', {}) },
      endpoint: {
        commands: sameGrammar('hashkv health status', {
          options: spellOptions({ flag: '--cluster' }),
        }),
      },
      member: { commands: sameGrammar('list', {}) },
      // Shows the names of keys, without their values.
      get: {
        options: spellOptions({ flag: '--prefix --keys-only --count-only', number: '--limit' }),
        operands: { first: ['text'], min: 1 },
        requires: ['--keys-only', '--count-only'],
      },
      version: {},
    },
  },
  ...sameGrammar('kafka-topics kafka-topics.sh', {
    // Excluded: --command-config, which reads properties that may load classes.
    manual: 'kafka-topics, Apache Kafka 3.6',
    style: 'word',
    options: spellOptions({
      flag: '--topics-with-overrides --at-min-isr-partitions --describe --exclude-internal --list --unavailable-partitions --under-min-isr-partitions --under-replicated-partitions --version',
      // Includes ZooKeeper, through which brokers before 3.0 were found.
      host: '--bootstrap-server --zookeeper',
      text: '--topic',
    }),
    requires: ['--list', '--describe', '--version'],
  }),
  ...sameGrammar('kafka-consumer-groups kafka-consumer-groups.sh', {
    manual: 'kafka-consumer-groups, Apache Kafka 3.6',
    style: 'word',
    options: spellOptions({
      flag: '--all-groups --all-topics --describe --list --members --offsets --state --verbose',
      number: '--timeout',
      host: '--bootstrap-server',
      text: '--group',
    }),
    // Does not check how these options are combined, because the program itself refuses invalid
    // combinations.
    requires: ['--list', '--describe', '--members', '--offsets', '--state'],
  }),
  ...sameGrammar('mysql mariadb', {
    // Requires a query, because without one it is a session. Excluded: --init-command and --pager
    // run programs, --tee writes. The database of -D may also be an operand. The clients of both
    // products read my.cnf in MYSQL_HOME before the user's. That file limits the session and makes
    // it read-only.
    manual: 'mysql(1), MySQL 8.0; mariadb(1), MariaDB 10.11',
    options: spellOptions({
      flag: '-B -C -E -H -N -r -s -t -v -X --batch --column-names --compress --html --no-beep --raw --silent --skip-column-names --table --verbose --vertical --xml',
      ...mysqlConnection,
      name: `${mysqlConnection.name} -D --database`,
      'sql:mysql': '-e --execute',
    }),
    operands: { first: ['name'] },
    requires: ['-e', '--execute'],
    environment: { MYSQL_HOME: settingsDirectory },
  }),
  ...sameGrammar('mysqladmin mariadb-admin', {
    // Bounds -i, which repeats for ever without -c.
    manual: 'mysqladmin(1), MySQL 8.0; mariadb-admin(1)',
    options: spellOptions({
      flag: '-E -r -s -v --relative --silent --verbose --vertical',
      ...mysqlConnection,
      number: '-c -i -P --count --port --sleep --connect-timeout',
    }),
    commands: sameGrammar('extended-status ext ping processlist proc status stat var variables ver version', {
      ...admin,
      endless: { when: ['-i', '--sleep'], unless: ['-c', '--count'], instead: { drop: [], add: ['-c', '2'] } },
    }),
  }),
  ...sameGrammar('mysqlshow mariadb-show', {
    manual: 'mysqlshow(1), MySQL 8.0',
    options: spellOptions({ flag: '-i -k -t -v --count --keys --status --verbose', ...mysqlConnection }),
    operands: { first: ['name', 'name', 'name'] },
  }),
  patronictl: {
    // Excluded: edit-config, failover and others, which change the cluster; -w and -W, which
    // repeat.
    manual: 'patronictl, Patroni 3.2',
    options: spellOptions({ settings: '-c --config-file' }),
    commands: {
      ...sameGrammar('list topology', {
        options: spellOptions({ flag: '-e -t --extended --timestamp', name: '-f --format --group' }),
        operands: { rest: 'name' },
      }),
      history: {
        options: spellOptions({ name: '-f --format' }),
        operands: { first: ['name'] },
      },
      version: { operands: { rest: 'name' } },
    },
  },
  pg_isready: {
    manual: 'pg_isready(1), PostgreSQL 15',
    options: spellOptions({
      flag: '-q --quiet -V --version',
      host: '-h --host',
      number: '-p -t --port --timeout',
      name: '-d -U --dbname --username',
    }),
    refuses: ['=', '://'],
  },
  ...sameGrammar('pg_controldata', {
    manual: 'pg_controldata(1), PostgreSQL 15',
    options: spellOptions({ file: '-D' }),
    operands: { first: ['file'] },
    // Prints only the control file.
    measures: {},
  }),
  pg_lsclusters: {
    manual: 'pg_lsclusters(1), postgresql-common 248',
    options: spellOptions({ flag: '-h -j --no-header --json' }),
  },
  psql: {
    // Excluded: -f and a backslash read files and run programs, -o and -L write, -v passes values
    // to scripts. A name with = or :// is a connection string.
    manual: 'psql(1), PostgreSQL 15',
    options: spellOptions({
      flag: `-a -A -b -e -E -H -l -n -q -t -V -w -x -X -z -0 --csv --echo-all --echo-errors --echo-hidden --echo-queries --expanded --html
        --list --no-align --no-password --no-psqlrc --no-readline --quiet --tuples-only --version`,
      psql: '-c --command',
      host: '-h --host',
      number: '-p --port',
      name: '-d -U --dbname --username',
      text: '-F -P -R -T --field-separator --pset --record-separator --table-attr',
    }),
    operands: { first: ['name', 'name'] },
    requires: ['-c', '--command', '-l', '--list', '-V', '--version'],
    refuses: ['^\\s*(?!(border|expanded|footer|format|linestyle|null|pager|tuples_only|x)=)\\w+\\s*=', '^\\w+://'],
    // Sets what every role may set for itself. Only a superuser may set temp_file_limit; for others
    // the session would fail.
    environment: {
      PGOPTIONS: '-c default_transaction_read_only=on -c statement_timeout=30s -c lock_timeout=5s',
      PGCONNECT_TIMEOUT: '10',
    },
  },
  'rabbitmq-diagnostics': {
    manual: 'rabbitmq-diagnostics(8), RabbitMQ 3.12',
    options: spellOptions({ flag: '-q -s --quiet --silent', name: '-p -t --formatter --timeout --unit' }),
    commands: sameGrammar(
      `alarms check_alarms check_local_alarms check_port_connectivity check_running check_virtual_hosts cluster_status is_booting is_running
      check_if_node_is_mirror_sync_critical check_if_node_is_quorum_critical check_if_any_deprecated_features_are_used check_port_listener check_protocol_listener
      check_certificate_expiration erlang_version list_network_interfaces tls_versions log_location resolver_info disabled_plugins list_node_auth_attempt_stats
      listeners maybe_stuck memory_breakdown ping runtime_thread_stats server_version status`,
      { operands: { first: ['name'] } },
    ),
  },
  rabbitmqctl: {
    // Excluded: eval and rpc; names of nodes, which connect to another node; list_parameters and
    // environment, which may show passwords.
    manual: 'rabbitmqctl(8), RabbitMQ 3.12',
    options: spellOptions({
      flag: '-q -s --quiet --silent --offline --online --local --no-table-headers',
      name: '-t --formatter --timeout',
      // `/` is the name of the default vhost.
      text: '-p --vhost',
    }),
    commands: sameGrammar(
      `cluster_status list_bindings list_channels list_ciphers list_connections list_consumers list_exchanges list_feature_flags
      list_permissions list_user_permissions list_topic_permissions list_user_limits list_vhost_limits list_operator_policies list_policies list_queues list_unresponsive_queues list_users list_vhosts ping status version`,
      { operands: { rest: 'name' } },
    ),
  },
  'redis-cli': {
    // Excluded: values and all commands that return them, and settings with a password. -a shows a
    // password to everybody; --eval and -x read files and input. --stat, --latency, --bigkeys and
    // MONITOR never end. KEYS blocks all clients while it reads every key.
    manual: 'redis-cli, Redis 7',
    options: spellOptions({ flag: '-3 --csv --json --no-auth-warning --no-raw --raw', host: '-h', number: '-n -p' }),
    commands: {
      ...redis('info', plain({ rest: 'name' })),
      ...redis('dbsize lastsave ping role time', plain()),
      ...redis('exists hlen llen pttl scard strlen ttl type xlen zcard', plain({ rest: 'text', min: 1 })),
      // Allows only small calls, because a call blocks the server. Options are read in either case.
      ...redis('scan', {
        style: 'plain',
        options: spellOptions({ text: 'match MATCH type TYPE', count: 'count COUNT' }),
        operands: { first: ['number'], min: 1 },
      }),
      ...redis('config', {
        commands: redis('get', {
          operands: { rest: 'text', min: 1 },
          refuses: [`^(?!(?:${redisSettings})[a-z-]*\\*?$)`],
        }),
      }),
      ...redis('acl', { commands: redis('whoami cat', plain()) }),
      ...redis('module', { commands: redis('list', plain()) }),
      ...redis('command', { commands: redis('count', plain()) }),
      ...redis('object', {
        commands: redis('encoding idletime refcount', plain({ rest: 'text', min: 1 })),
      }),
      ...redis('pubsub', {
        commands: redis('numsub numpat channels', plain({ rest: 'text' })),
      }),
      // Shows names of queues and groups, and their progress, without entries.
      ...redis('xinfo', {
        commands: redis('groups consumers', plain({ rest: 'text', min: 1 })),
      }),
      ...redis('sentinel', {
        commands: redis('masters slaves replicas sentinels get-master-addr-by-name ckquorum', plain({ rest: 'name' })),
      }),
      ...redis('client', {
        commands: { ...redis('list', plain()), ...redis('getname id info', plain()) },
      }),
      ...redis('cluster', { commands: redis('info myid nodes shards slots', plain()) }),
      ...redis('latency', {
        commands: redis('doctor history latest', plain({ rest: 'name' })),
      }),
      ...redis('memory', {
        commands: {
          ...redis('doctor stats', plain()),
          ...redis('usage', {
            style: 'plain',
            options: spellOptions({ count: 'samples SAMPLES' }),
            operands: { first: ['text'], min: 1 },
          }),
        },
      }),
      ...redis('slowlog', { commands: redis('get len', plain({ first: ['number'] })) }),
    },
  },
  repmgr: {
    manual: 'repmgr(1), repmgr 5.4',
    options: spellOptions({ flag: '--compact --csv --verbose', settings: '-f --config-file' }),
    commands: {
      cluster: {
        commands: sameGrammar('crosscheck matrix show', {}),
      },
      node: { commands: sameGrammar('status', {}) },
    },
  },
  sqlite3: {
    // Requires -readonly: without it a missing file is created, which may have an effect by
    // existing, such as /etc/nologin.
    manual: 'sqlite3(1), SQLite 3.40',
    style: 'word',
    options: spellOptions({
      flag: '-ascii -bail -batch -box -column -csv -header -html -json -line -list -markdown -noheader -quote -readonly -safe -table -tabs -version',
      text: '-newline -nullvalue -separator',
    }),
    operands: { first: ['file', 'sql:sqlite'], min: 2 },
    requires: ['-readonly'],
    adds: ['-readonly'],
    refuses: ['^file:', '^\\s*\\.'],
  },
}
