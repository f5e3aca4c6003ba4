import type { Grammar, Grammars, Option } from '../grammar.ts'

/** Options by kind, spelled as in the manual: `spell({ flag: '-a --all', number: '-n --lines' })`. */
export function spell(kinds: Partial<Record<Option, string>>): Record<string, Option> {
  const options: Record<string, Option> = {}
  for (const [kind, words] of Object.entries(kinds)) {
    for (const word of words.trim().split(/\s+/)) options[word] = kind as Option
  }
  return options
}

/** Several names of one grammar: `each('a addr address', …)`. */
export function each(names: string, grammar: Grammar): Record<string, Grammar> {
  return Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, grammar]),
  )
}

/**
 * Sub-commands of sub-commands by their paths, separated by commas, with alternatives in one word:
 * `paths('volume info|list, peer status', …)`. What may follow a path is the same for all of them.
 */
export function paths(text: string, leaf: Grammar): Record<string, Grammar> {
  const lines = text.split(',').map((line) => line.trim().split(/\s+/))
  return level(lines, leaf)
}

function level(lines: readonly (readonly string[])[], leaf: Grammar): Record<string, Grammar> {
  const rests = new Map<string, (readonly string[])[]>()
  for (const [first = '', ...rest] of lines) {
    for (const name of first.split('|')) rests.set(name, [...(rests.get(name) ?? []), rest])
  }
  return Object.fromEntries(
    [...rests].map(([name, following]): [string, Grammar] => {
      const deeper = following.filter((rest) => rest.length > 0)
      if (deeper.length === 0) return [name, leaf]
      const commands = level(deeper, leaf)
      return [name, { manual: leaf.manual, commands, ...(deeper.length < following.length ? { bare: true } : {}) }]
    }),
  )
}

/** A program or sub-command that takes these options and any words. */
export const plain = (manual: string, options: Grammar['options'] = {}, more: Partial<Grammar> = {}): Grammar => ({
  manual,
  options,
  operands: { rest: 'text' },
  ...more,
})

/** Flags, options with a text, and these operands. */
export const flags = (manual: string, flag: string, values = '', operands?: Grammar['operands']): Grammar => ({
  manual,
  options: spell({ flag, ...(values ? { text: values } : {}) }),
  ...(operands ? { operands } : {}),
})

/** One of these flags, and nothing that is not among them. */
export const oneOf = (
  manual: string,
  flag: string,
  more = '',
  values = '',
  operands?: Grammar['operands'],
): Grammar => ({ ...flags(manual, `${flag} ${more}`.trim(), values, operands), requires: flag.split(' ') })

/** Sub-commands by their paths, each with any words. */
export const verbs = (manual: string, text: string, options: Grammar['options'] = {}): Grammar => ({
  manual,
  options,
  commands: paths(text, plain(manual)),
})

/** What GNU programs have in common. */
export const gnu = '--help --version'

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
