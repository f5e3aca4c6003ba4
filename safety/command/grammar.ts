import type { CloudName } from './clouds.ts'

/**
 * Command lines of programs, as data. A grammar lists only what reads. With any other option,
 * sub-command or operand the call needs approval. Grammars are written from the program's manual,
 * never from examples.
 */

/**
 * Languages of texts inside a word. Each language has an inspector that tells whether the text only
 * reads.
 */
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
 * The kind of a value, which decides how the judge checks it.
 *
 * - `text` without any effect: a pattern, a format, a list of fields, a date
 * - `number` digits with an optional sign, fraction and size suffix
 * - `name` a unit, container, package, process or user: no path, no blank
 * - `file` a path that is read: normalised, then compared with the sensitive ones
 * - `directory` where the program goes before it reads: compared with the sensitive ones, and used
 *   as the place of what it reads
 * - `config` a file that the program reads for itself and does not print, below `/etc`
 * - `endpoint` a file, or an internet address as lsof(8) writes it, whose host is already resolved
 * - `revision` a revision of a repository, a path in it, or `revision:path`
 * - `sink` a path that is written: only `/dev/null` (or `-`) is a read
 * - `host` a name that leaves this machine in a packet: only one already resolved (a leading `@`,
 *   as dig has it, is not part of the name)
 * - `url` an address that leaves this machine in the same way; scheme http or https, no user, known
 *   host
 * - `request` a path, with or without a query, that is sent to a known server
 */
export type ValueKind =
  | 'text'
  | 'number'
  /** A number of repetitions or results, from 1 to 1,000. */
  | 'count'
  /** A moment in the past, written as a time before now. */
  | 'ago'
  /** A time to wait, of ten minutes at most. */
  | 'wait'
  | 'name'
  | 'file'
  | 'directory'
  | 'config'
  | 'endpoint'
  | 'revision'
  | 'sink'
  | 'host'
  /** A bucket or repository. A bucket of another owner could be used to send data out. */
  | 'place'
  | 'url'
  /** A request header without a credential: `Accept: text/plain`, or the name of a known host. */
  | 'header'
  /** A request method that only reads. */
  | 'method'
  /** A socket of the program's own service below /run. */
  | 'socket'
  /** Addresses, separated by commas. */
  | 'urls'
  /**
   * Settings of the program below /etc, at a path with its name: the program uses them and does not
   * print them.
   */
  | 'settings'
  /** `host:port:address`, all of which are known. */
  | 'resolved'
  /**
   * A key or certificate of the program's own identity, in places where only the administrator
   * writes: used, not printed.
   */
  | 'credential'
  /** A file of which the program prints only certificates. */
  | 'certificate'
  /** The socket of a container runtime, under one of its usual names. */
  | 'runtime'
  /** A docker compose file with its usual name. */
  | 'compose'
  | 'request'
  /** `name=value` of a query, if an argument of the program puts the pair into a query. */
  | 'parameter'
  /** `name=value` of a query, with a value that the program encodes. */
  | 'encoded'
  | Language

/**
 * The values of an option: `flag` takes no value; a kind takes a value, attached or as the next
 * word; `kind?` takes a value only with `=`.
 */
export type Option = 'flag' | ValueKind | `${ValueKind}?`

export type Grammar = {
  /** The source of a grammar and its sub-commands, such as `ls(1), coreutils 9.1`. */
  manual?: string
  /**
   * `posix`: short flags cluster (`-la`, `-n5`), long options have two dashes and `=`, options and
   * operands mix, `--` ends options. `word`: long names with one dash (`-name x`), no clusters
   * (find, openssl, java tools). `plain`: only words in `options` are options, so `echo '--- disk
   * ---'` has one operand.
   */
  style?: 'posix' | 'word' | 'plain'
  /**
   * Options that only read, spelled exactly, with dashes. Abbreviations of long options are
   * deliberately unknown.
   */
  options?: Readonly<Record<string, Option>>
  /** Whether a number may be an option: `head -20`. */
  digits?: true
  /** Letters that the first operand may have without a dash: `ps aux`, `tar tvf`. */
  bsd?: string
  /** Letters of `bsd` that take a following word as value, in order: `tar tf x`, `ps axo pid`. */
  bsdValues?: Readonly<Record<string, ValueKind>>
  operands?: {
    /** Kinds of operands by position. */
    first?: readonly ValueKind[]
    /** The kind of every further operand; if absent, none is allowed. */
    rest?: ValueKind
    /**
     * Least number of operands. With fewer, the call is something else, such as an interactive
     * session or a shell.
     */
    min?: number
    /** Options that replace the first positional operand: `grep -e pattern file`. */
    unlessOption?: readonly string[]
  }
  /**
   * Words that are allowed among the operands, spelled exactly: `(`, `!`, `-a` of test, `dev` of
   * ip.
   */
  keywords?: readonly string[]
  /**
   * Sub-commands with their own grammars. The outer options may precede or follow a sub-command; no
   * other word may precede it.
   */
  commands?: Readonly<Record<string, Grammar>>
  /** Whether the program may be called without a sub-command. */
  bare?: true
  /** Options of which a read needs one: `sed -n`, `tar -t`. The `bsd` letter `t` counts as `-t`. */
  requires?: readonly string[]
  /** Words that code may add to make the command only read. */
  adds?: readonly string[]
  /** Options that a read needs, all of them together. */
  requiresAll?: readonly string[]
  /**
   * Conditions on the first operand: if the value of an option or an operand matches `value`, the
   * first operand must match `first`.
   */
  only?: readonly { value: string; first: string }[]
  /**
   * Options of which one must be present, if the value of an option or an operand matches `value`.
   */
  needs?: { value: string; options: readonly string[]; because?: string }
  /**
   * Regular expressions that no operand or option value may match, at any place and in either case:
   * `kubectl get secrets`, `sysctl a=b`. Sub-commands have their own expressions. An expression
   * only narrows what the kinds of values allow.
   */
  refuses?: readonly string[]
  /** Regular expressions that no operand may match. */
  refusesOperands?: readonly string[]
  /** Whether `--` begins another command. */
  joins?: true
  /**
   * A regular expression for the second operand, if a verb follows its object: `gluster volume heal
   * gv0 info`.
   */
  second?: string
  /**
   * Whether the program reads everything below its file operands, always or with one of these
   * options: `grep -r x /etc` reads the password hashes. Only single files and trees without
   * secrets are allowed then; without an operand, the working directory counts. `unless`: options
   * that prevent it, except together with an option in `by`: `git show --stat` prints no patch.
   */
  recursive?: true | readonly string[] | { unless: readonly string[]; by: readonly string[] }
  /**
   * Whether the program describes its files (names, sizes, whether they are whole) without printing
   * their contents: with `by`, and not with `unless`.
   */
  measures?: { by?: readonly string[]; unless?: readonly string[] }
  /** Set if the program does not end by itself. */
  endless?: {
    /**
     * The case in which the program is endless: always, with one of these options, with exactly one
     * numeric operand (`interval`: `vmstat 1`), or with two operands (`period`: `jstat -gc 1
     * 250ms`).
     */
    when: 'always' | 'interval' | 'period' | readonly string[]
    /** Options that make the program end: `-c`, `--count`. */
    unless?: readonly string[]
    /**
     * Options that do not make the program end, but limit the past that it shows. With one of these
     * options, nothing is added.
     */
    enough?: readonly string[]
    /**
     * The form of the command that ends: options to drop and arguments to add. The form is shown to
     * the model and tried once. `null` if there is none.
     */
    instead: { drop: readonly string[]; add: readonly string[] } | null
  }
  /** The cloud whose list of calls judges the command; the other fields do not count then. */
  cloud?: CloudName
  /**
   * A regular expression for allowed input from a command before it, compared with that command's
   * known output. `requires` does not count then: `echo ruok | nc localhost 2181`.
   */
  input?: string
  /**
   * Environment variables that the executor must set, because the verdict depends on them:
   * `PGOPTIONS` for a read-only session.
   */
  environment?: Readonly<Record<string, string>>
}

/** Grammars by a program's base name. Several names may share one grammar. */
export type Grammars = Readonly<Record<string, Grammar>>

/** Writes options by kind: `spellOptions({ flag: '-a --all', number: '-n --lines' })`. */
export function spellOptions(kinds: Partial<Record<Option, string>>): Record<string, Option> {
  const options: Record<string, Option> = {}
  for (const [kind, words] of Object.entries(kinds)) {
    for (const word of words.trim().split(/\s+/)) options[word] = kind as Option
  }
  return options
}

/** Gives several names one grammar: `sameGrammar('a addr address', …)`. */
export function sameGrammar(names: string, grammar: Grammar): Record<string, Grammar> {
  return Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, grammar]),
  )
}

/**
 * Builds nested sub-commands from paths, which commas separate, with alternatives in one word:
 * `paths('volume info|list, peer status', …)`. All paths allow the same words after them.
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

/** Grammar of a program or sub-command with these options and any operands. */
export const plain = (manual: string, options: Grammar['options'] = {}, more: Partial<Grammar> = {}): Grammar => ({
  manual,
  options,
  operands: { rest: 'text' },
  ...more,
})

/** Grammar with flags, options that take a text, and these operands. */
export const flags = (manual: string, flag: string, values = '', operands?: Grammar['operands']): Grammar => ({
  manual,
  options: spellOptions({ flag, ...(values ? { text: values } : {}) }),
  ...(operands ? { operands } : {}),
})

/**
 * Grammar that requires one of the flags in `flag`, and also allows the flags in `more` and the
 * options in `values`.
 */
export const oneOf = (
  manual: string,
  flag: string,
  more = '',
  values = '',
  operands?: Grammar['operands'],
): Grammar => ({ ...flags(manual, `${flag} ${more}`.trim(), values, operands), requires: flag.split(' ') })

/** Grammar of sub-commands, given by their paths, each with any operands. */
export const verbs = (manual: string, text: string, options: Grammar['options'] = {}): Grammar => ({
  manual,
  options,
  commands: paths(text, plain(manual)),
})

/** Options that all GNU programs have. */
export const gnu = '--help --version'

/** Grammar of a program of which only the version may be read. */
const version = (flag: string): Grammar => ({
  manual: 'the manual of each',
  options: spellOptions({ flag }),
  requires: flag.split(' '),
})
const word = (): Grammar => ({ manual: 'the manual of each', commands: { version: { manual: 'the manual of each' } } })

/** Programs of which only the version may be read; other calls need approval. */
export const versions: Grammars = {
  ...sameGrammar(
    `keepalived iperf3 fio scylla crash drgn rbspy fluent-bit vector telegraf envoy zookeeper dnsmasq proxysql mysqlrouter innochecksum goaccess
    firecracker zabbix_agentd pgbouncer pgbadger pg_activity multitail popeye helmfile drone act concourse buildkite-agent consul-template nsqadmin newrelic-infra dive kexec influxd`,
    version('--version'),
  ),
  ...sameGrammar('kustomize boundary packer waypoint traefik caddy k9s dlv', word()),
}
