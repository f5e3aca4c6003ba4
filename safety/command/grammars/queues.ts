import type { Grammars } from '../grammar.ts'
import { each, paths, plain, spell, verbs } from './spell.ts'

const nats = 'nats, natscli 0.1'
const kafka = 'Apache Kafka 3.6'

/** Queues and logs of messages: what is in them is left where it is. */
export const queues: Grammars = {
  nats: {
    // -s goes elsewhere, a context holds credentials; pub, sub, next, get and the rest act or take messages.
    manual: nats,
    options: spell({ flag: '--json -j --names -n --all -a --no-select', text: '--sort --top --subject --filter' }),
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
    spell({
      flag: '-d --detailed -i -r --internal -p --print-partitions -s --print-summary -a --print-all',
      text: '--format',
    }),
  ),
  ...each('kafka-configs kafka-configs.sh', {
    manual: `kafka-configs, ${kafka}`,
    style: 'word',
    options: spell({ flag: '--describe --all', host: '--bootstrap-server', name: '--entity-type --entity-name' }),
    requires: ['--describe'],
    // Users have their credentials as settings.
    refuses: ['^users?$'],
  }),
  ...each('kafka-broker-api-versions kafka-broker-api-versions.sh', {
    manual: `kafka-broker-api-versions, ${kafka}`,
    style: 'word',
    options: spell({ host: '--bootstrap-server' }),
    requires: ['--bootstrap-server'],
  }),
  ...each('kafka-log-dirs kafka-log-dirs.sh', {
    manual: `kafka-log-dirs, ${kafka}`,
    style: 'word',
    options: spell({ flag: '--describe', host: '--bootstrap-server', text: '--broker-list --topic-list' }),
    requires: ['--describe'],
  }),
  ...each('kafka-get-offsets kafka-get-offsets.sh', {
    manual: `kafka-get-offsets, ${kafka}`,
    style: 'word',
    options: spell({ host: '--bootstrap-server', text: '--topic --partitions --time' }),
    requires: ['--bootstrap-server'],
  }),
  ...each('kafka-acls kafka-acls.sh', {
    manual: `kafka-acls, ${kafka}`,
    style: 'word',
    options: spell({ flag: '--list', host: '--bootstrap-server', text: '--topic --group' }),
    requires: ['--list'],
  }),
  ...each('kafka-metadata-quorum kafka-metadata-quorum.sh', {
    manual: `kafka-metadata-quorum, ${kafka}`,
    style: 'word',
    options: spell({ host: '--bootstrap-server' }),
    commands: { describe: { manual: kafka, options: spell({ flag: '--status --replication' }) } },
  }),
  ...each('kcat kafkacat', {
    // -P produces, -G commits, -F and -X are settings; consuming without a group commits nothing and ends with -e or a count.
    manual: 'kcat(1), 1.7',
    options: spell({ flag: '-L -C -e -q -J -u', host: '-b', text: '-t -o', number: '-c -p' }),
    requires: ['-L', '-e'],
    refuses: ['^end$'],
  }),
  ...each(
    'rabbitmq-queues',
    verbs(
      'rabbitmq-queues(8), RabbitMQ 3.12',
      'quorum_status|check_if_node_is_quorum_critical|check_if_new_quorum_queue_replicas_have_finished_initial_sync|help',
      spell({ flag: '-q --quiet', name: '-p --vhost' }),
    ),
  ),
  'rabbitmq-plugins': verbs(
    'rabbitmq-plugins(8), RabbitMQ 3.12',
    'list|directories|is_enabled|version',
    spell({ flag: '-q -v -m -E -e --quiet' }),
  ),
  rabbitmqadmin: {
    // -H goes elsewhere; get takes messages unless they are put back, export prints hashes.
    manual: 'rabbitmqadmin, RabbitMQ 3.12: Management Command Line Tool',
    options: spell({ name: '-V --vhost -f --format', text: '-S --sort' }),
    commands: each('list show', {
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
    spell({ text: '--subscription' }),
  ),
}
