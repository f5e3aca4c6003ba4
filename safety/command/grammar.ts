import type { CloudName } from './clouds.ts'

/**
 * Command lines of programs, as data. A grammar names only what looks: any other option,
 * sub-command or operand makes the call something else, and somebody is asked. Written from the
 * program's manual, never from examples.
 */

/** Small languages inside a word; each has one inspector that tells whether the text only looks. */
export type Language =
  | 'awk'
  | 'sed'
  | 'jq'
  | 'sql:postgres'
  | 'sql:mysql'
  | 'sql:sqlite'
  | 'sql:clickhouse'
  | 'cql'
  | 'mongosh'
  | 'psql'
  | 'fields:container'
  | 'fields:list'
  | 'fields:journal'
  | 'fields:kubernetes'

/**
 * What a value is, so that the judge knows what to hold it against.
 *
 * - `text` inert wherever it stands: a pattern, a format, a list of fields, a date
 * - `number` digits with an optional sign, fraction and size suffix
 * - `name` a unit, container, package, process or user: no path, no blank
 * - `file` a path that is read: normalised, then held against the sensitive ones
 * - `directory` where the program goes before it reads: itself held against the sensitive ones, and
 *   a place for what it reads
 * - `config` a file that the program reads for itself and does not print, below `/etc`
 * - `endpoint` a file, or an internet address as lsof(8) writes it, whose host is already resolved
 * - `revision` a revision of a repository, a path in it, or `revision:path`
 * - `sink` a path that is written: only `/dev/null` (or `-`) is a read
 * - `host` a name that leaves this machine in a packet: only one already resolved (a leading `@`,
 *   as dig has it, is not
 *             part of the name)
 * - `url` the same for an address; scheme http or https, no user, known host
 * - `request` a path, with or without a query, that is asked of a server that is known
 */
export type ValueKind =
  | 'text'
  | 'number'
  /** How often something is done, or how many are asked for: 1 to 1,000. */
  | 'count'
  /** A moment that has passed already, as a time before now. */
  | 'ago'
  /** How long is waited: ten minutes at most. */
  | 'wait'
  | 'name'
  | 'file'
  | 'directory'
  | 'config'
  | 'endpoint'
  | 'revision'
  | 'sink'
  | 'host'
  /** A bucket, a repository: a name that others own may be asked for to carry data out. */
  | 'place'
  | 'url'
  /** A request's header without a credential: `Accept: text/plain`, or the name of a known host. */
  | 'header'
  /** How a server is asked: only what asks. */
  | 'method'
  /** A socket of the program's own service below /run. */
  | 'socket'
  /** Addresses, with commas between. */
  | 'urls'
  /** The program's own settings below /etc, by a path with its name: used and not printed. */
  | 'settings'
  /** `host:port:address`, all of them known. */
  | 'resolved'
  /**
   * A key or certificate by which the program shows who it is, in the administrator's places: used,
   * not printed.
   */
  | 'credential'
  /** A file of which the program prints certificates and nothing else, whatever is in it. */
  | 'certificate'
  /** The socket of a container runtime, by one of its usual names. */
  | 'runtime'
  /** A file of docker compose by its usual name. */
  | 'compose'
  | 'request'
  /** `name=value` of a query that is asked, where the program's words say so. */
  | 'parameter'
  /** The same, and the program encodes the value. */
  | 'encoded'
  | Language

/** `flag` takes no value. A kind takes one, attached or next; `kind?` only attached by `=`. */
export type Option = 'flag' | ValueKind | `${ValueKind}?`

export type Grammar = {
  /** The source of a grammar: `ls(1), coreutils 9.1`. Its sub-commands are from there too. */
  manual?: string
  /**
   * `posix`: short flags cluster (`-la`, `-n5`), long options have two dashes and `=`, options and
   * operands mix, `--` ends options. `word`: long names with one dash (`-name x`), no clusters
   * (find, openssl, java tools). `plain`: only a word in `options` is one, so `echo '--- disk ---'`
   * has one operand.
   */
  style?: 'posix' | 'word' | 'plain'
  /**
   * Options that only look, by exact spelling with dashes. Abbreviated long options are unknown on
   * purpose.
   */
  options?: Readonly<Record<string, Option>>
  /** A number may be an option: `head -20`. */
  digits?: true
  /** Letters allowed in a first operand without a dash: `ps aux`, `tar tvf`. */
  bsd?: string
  /** Letters of `bsd` that take the next word, in order: `tar tf x`, `ps axo pid`. */
  bsdValues?: Readonly<Record<string, ValueKind>>
  operands?: {
    /** Kinds by position. */
    first?: readonly ValueKind[]
    /** Kind of every further one; absent: there may be none. */
    rest?: ValueKind
    /** Fewer make it something else (an interactive session, a shell): not a read. */
    min?: number
    /** An option that takes the place of the first positional operand: `grep -e pattern file`. */
    unlessOption?: readonly string[]
  }
  /** Exact words that may stand among operands: `(`, `!`, `-a` of test, `dev` of ip. */
  keywords?: readonly string[]
  /**
   * Sub-commands with their own grammars; the outer options may stand on either side. No other word
   * comes first.
   */
  commands?: Readonly<Record<string, Grammar>>
  /** The program may be called without any sub-command. */
  bare?: true
  /** One of these is needed for a read: `sed -n`, `tar -t`. The `bsd` letter `t` is `-t`. */
  requires?: readonly string[]
  /** Code may add what is missing: the command then only looks. */
  adds?: readonly string[]
  /** All of these must be present. */
  requiresAll?: readonly string[]
  /** Where an option's value or operand matches `value`, the first operand matches `first`. */
  only?: readonly { value: string; first: string }[]
  /** Where an option's value or an operand matches `value`, one of the options has to be there. */
  needs?: { value: string; options: readonly string[]; because?: string }
  /**
   * Regular expressions that no operand or option value may match, anywhere in it and in either
   * case: `kubectl get secrets`, `sysctl a=b`. For this grammar alone: sub-commands have their own.
   * Only narrows what the kinds allow.
   */
  refuses?: readonly string[]
  /** The same for operands alone. */
  refusesOperands?: readonly string[]
  /** `--` begins another command. */
  joins?: true
  /**
   * A regular expression that the second operand must match, where a verb follows its object:
   * `gluster volume heal gv0 info`.
   */
  second?: string
  /**
   * Reads all below its file operands, always or with one of these options: `grep -r x /etc` reads
   * the password hashes. Only trees known to hold nothing secret, and single files. Without an
   * operand, the working directory. `unless` one of these options is there, except `by` another:
   * `git show` prints a patch, with `--stat` it does not.
   */
  recursive?: true | readonly string[] | { unless: readonly string[]; by: readonly string[] }
  /**
   * Tells about its files (names, sizes, whether they are whole) and prints nothing in them: with
   * `by`, and not with `unless`.
   */
  measures?: { by?: readonly string[]; unless?: readonly string[] }
  /** Does not end by itself. */
  endless?: {
    /**
     * Always, with one of these options, with exactly one numeric operand (`interval`: `vmstat 1`),
     * or with two operands (`period`: `jstat -gc 1 250ms`).
     */
    when: 'always' | 'interval' | 'period' | readonly string[]
    /** Options that bound it all the same: `-c`, `--count`. */
    unless?: readonly string[]
    /** Options that do not end it, but bound the wanted past: with one nothing is added. */
    enough?: readonly string[]
    /**
     * The bounded form: options to drop and words to add, shown to the model and tried once.
     * `null`: none.
     */
    instead: { drop: readonly string[]; add: readonly string[] } | null
  }
  /** Its words follow a cloud's naming rule, and nothing else in here counts. */
  cloud?: CloudName
  /**
   * Input that it may get from a command before it, as a regular expression over what is known of
   * that. `requires` does not count then: `echo ruok | nc localhost 2181`.
   */
  input?: string
  /**
   * Environment that the executor must set for the verdict to hold: `PGOPTIONS` for a read-only
   * session.
   */
  environment?: Readonly<Record<string, string>>
}

/** Grammars by the program's base name. Several names may share one grammar. */
export type Grammars = Readonly<Record<string, Grammar>>

/** Options by kind, as in the manual: `spell({ flag: '-a --all', number: '-n --lines' })`. */
export function spellOptions(kinds: Partial<Record<Option, string>>): Record<string, Option> {
  const options: Record<string, Option> = {}
  for (const [kind, words] of Object.entries(kinds)) {
    for (const word of words.trim().split(/\s+/)) options[word] = kind as Option
  }
  return options
}

/** Several names of one grammar: `each('a addr address', …)`. */
export function sameGrammar(names: string, grammar: Grammar): Record<string, Grammar> {
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
  options: spellOptions({ flag, ...(values ? { text: values } : {}) }),
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
  options: spellOptions({ flag }),
  requires: flag.split(' '),
})
const word = (): Grammar => ({ manual: 'the manual of each', commands: { version: { manual: 'the manual of each' } } })

/** Programs of which a night asks only the version: the rest is asked. */
export const versions: Grammars = {
  ...sameGrammar(
    `keepalived iperf3 fio scylla crash drgn rbspy fluent-bit vector telegraf envoy zookeeper dnsmasq proxysql mysqlrouter innochecksum goaccess
    firecracker zabbix_agentd pgbouncer pgbadger pg_activity multitail popeye helmfile drone act concourse buildkite-agent consul-template nsqadmin newrelic-infra dive kexec influxd`,
    version('--version'),
  ),
  ...sameGrammar('kustomize boundary packer waypoint traefik caddy k9s dlv', word()),
}
