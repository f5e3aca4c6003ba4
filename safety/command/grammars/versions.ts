import type { Grammar, Grammars } from '../grammar.ts'
import { each, spell } from './spell.ts'

/** Called for what it is, and for nothing else. */
const version = (flag: string): Grammar => ({
  manual: 'the manual of each',
  options: spell({ flag }),
  requires: flag.split(' '),
})
const word = (): Grammar => ({ manual: 'the manual of each', commands: { version: { manual: 'the manual of each' } } })

/** Programs of which a night asks the version alone: everything else that they do is asked about. */
export const versions: Grammars = {
  ...each(
    `keepalived iperf3 fio scylla crash drgn rbspy fluent-bit vector telegraf envoy zookeeper dnsmasq proxysql mysqlrouter innochecksum goaccess
    firecracker zabbix_agentd pgbouncer pgbadger pg_activity multitail popeye helmfile drone act concourse buildkite-agent consul-template nsqadmin newrelic-infra dive kexec influxd`,
    version('--version'),
  ),
  ...each('kustomize boundary packer waypoint traefik caddy k9s dlv', word()),
}
