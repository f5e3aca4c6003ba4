import type { Word } from './parse.ts'
import { inputRunners, shells, type Wrapper, wrappers } from './wrappers.ts'

/** A command found inside another one. `before` and `after` are the words round it, for writing it anew. */
export type Inner = ArgvInner | ScriptInner
type ArgvInner = { kind: 'argv'; words: Word[]; before: Word[]; after: Word[] }
type ScriptInner = { kind: 'script'; text: string; before: Word[]; after: Word[] }

export type Unwrapped = {
  inner: Inner[]
  /** Commands that may be inside, since an option is not known: for the hard list only. */
  guesses: Word[][]
  /** Why a read inside is not one any more; null when it stays one. */
  why: { word: Word | null; text: string } | null
  /** Names of hosts and of containers that the wrapper reaches. */
  hosts: Word[]
  names: Word[]
  root: boolean
  assignments: { name: string; value: string }[]
  /** Ends what is inside after a while. */
  bounds: boolean
  /** Positions of words that ask for a terminal, and whether it repeats for ever. */
  tty: number[]
  endless: boolean
  /** A shell that waits for somebody to type. */
  interactive: boolean
  /** Directories of this machine under their names inside a container. */
  mounts: { inside: string; outside: string }[]
}

const empty = (): Unwrapped => ({
  inner: [],
  guesses: [],
  why: null,
  hosts: [],
  names: [],
  root: false,
  assignments: [],
  bounds: false,
  tty: [],
  endless: false,
  interactive: false,
  mounts: [],
})

type Compiled = {
  wrapper: Wrapper
  flags: Set<string>
  values: Set<string>
  scripts: Set<string>
  alters: Set<string>
  tty: Set<string>
  commands: Map<string, Compiled> | null
}

const list = (text: string | undefined): string[] => text?.split(/\s+/).filter((word) => word !== '') ?? []

function compile(wrapper: Wrapper, outer?: Compiled): Compiled {
  const compiled: Compiled = {
    wrapper,
    flags: new Set([...(outer?.flags ?? []), ...list(wrapper.flags), ...list(wrapper.tty)]),
    values: new Set([...(outer?.values ?? []), ...list(wrapper.values)]),
    scripts: new Set(list(wrapper.scripts)),
    alters: new Set([...(outer?.alters ?? []), ...list(wrapper.alters)]),
    tty: new Set(list(wrapper.tty)),
    commands: null,
  }
  for (const flag of list(wrapper.flags)) compiled.values.delete(flag)
  for (const value of list(wrapper.values)) compiled.flags.delete(value)
  if (wrapper.commands) {
    compiled.commands = new Map(
      Object.entries(wrapper.commands).map(([name, inner]) => [name, compile(inner, compiled)]),
    )
  }
  return compiled
}

const table = new Map([...wrappers].map(([name, wrapper]) => [name, compile(wrapper)]))

/** What a command runs besides itself; null when it is no wrapper. `input` is what it reads, where that is known. */
export function unwrap(name: string, words: readonly Word[], input: string | null, piped: boolean): Unwrapped | null {
  if (shells.has(name)) return unwrapShell(words, input, piped)
  if (inputRunners.has(name))
    return input === null ? null : { ...empty(), inner: [script(input)], why: asks(null, 'runs its input') }
  const special = specials.get(name)
  if (special) return special(words, input)
  const wrapper = table.get(name)
  return wrapper ? unwrapByTable(words, wrapper) : null
}

const script = (text: string, before: Word[] = [], after: Word[] = []): ScriptInner => ({
  kind: 'script',
  text,
  before,
  after,
})
const argv = (words: Word[], before: Word[] = []): ArgvInner => ({ kind: 'argv', words, before, after: [] })
const asks = (word: Word | null, text: string) => ({ word, text })
const joined = (words: readonly Word[]): string => words.map((word) => word.text).join(' ')

function unwrapByTable(words: readonly Word[], start: Compiled): Unwrapped | null {
  const result = empty()
  const operands: Word[] = []
  let level = start
  let unknownAt: number | null = null
  let scripted = false
  let at = 1
  const doubt = (word: Word, text: string) => {
    result.why ??= asks(word, text)
  }
  while (at < words.length) {
    const word = words[at]!
    const text = word.text
    const wanted = level.commands ? 1 : (level.wrapper.before ?? 0) - operands.length
    if (text === '--') {
      at += 1
      if (wanted <= 0) break
      continue
    }
    const optionsAllowed = operands.length === 0 || level.wrapper.interspersed === true
    if (optionsAllowed && (text.startsWith('-') || level.flags.has(text)) && (text !== '-' || level.flags.has('-'))) {
      const option = readOption(words, at, level)
      if (option.unknown) unknownAt ??= at
      if (option.unknown || option.names.some((name) => level.alters.has(name)))
        doubt(word, 'changes how the command inside runs')
      if (option.names.some((name) => level.tty.has(name))) result.tty.push(at)
      if (option.names.some((name) => level.scripts.has(name)) && option.value !== null) {
        result.inner.push(script(option.value, words.slice(0, option.next - 1), words.slice(option.next)))
        doubt(word, 'runs a script')
        scripted = true
      }
      collectMount(option.names, option.value, result)
      at = option.next
    } else if (level.wrapper.assignments && /^[A-Za-z_]\w*=/.test(text)) {
      result.assignments.push({ name: text.slice(0, text.indexOf('=')), value: text.slice(text.indexOf('=') + 1) })
      if (!word.literal) doubt(word, 'is not known before it runs')
      at += 1
    } else if (level.commands) {
      const inner = level.commands.get(text)
      if (!inner) return unknownAt === null ? null : guess(words, unknownAt, result)
      level = inner
      at += 1
    } else if (wanted > 0) {
      operands.push(word)
      at += 1
    } else break
  }
  if (level.commands) return unknownAt === null ? null : guess(words, unknownAt, result)
  return finish(words, at, level, operands, scripted, unknownAt, result)
}

function finish(
  words: readonly Word[],
  at: number,
  level: Compiled,
  operands: Word[],
  scripted: boolean,
  unknownAt: number | null,
  result: Unwrapped,
): Unwrapped {
  const { wrapper } = level
  const rest = words.slice(at)
  if (wrapper.place === 'host') result.hosts.push(...operands)
  if (wrapper.place === 'name') result.names.push(...operands)
  result.root = wrapper.adds === 'root'
  if (wrapper.adds === undefined)
    result.why ??= asks(words[0]!, 'runs another command in a way that somebody has to see')
  if (wrapper.rest === 'shell' && rest.length > 0) result.inner.push(script(joined(rest), words.slice(0, at)))
  else if (wrapper.rest === 'argv' && rest.length > 0 && !scripted) result.inner.push(argv(rest, words.slice(0, at)))
  if (result.inner.length === 0) {
    result.why ??= asks(words[0]!, 'lacks a command to run')
    result.interactive = wrapper.adds === 'place' || wrapper.adds === 'root'
  }
  const name = baseName(words[0]!.text)
  if (name === 'timeout') result.bounds = boundsByTimeout(words, operands[0])
  if (name === 'watch') result.endless = true
  return unknownAt === null ? result : guess(words, unknownAt, result)
}

/** After an option that is not known the command may begin at either of the next words. */
function guess(words: readonly Word[], unknownAt: number, result: Unwrapped): Unwrapped {
  result.why ??= asks(words[unknownAt]!, 'is an option that is not known')
  for (let at = unknownAt + 1; at <= unknownAt + 3 && at < words.length; at += 1) result.guesses.push(words.slice(at))
  return result
}

type ReadOption = { names: string[]; value: string | null; next: number; unknown: boolean }

function readOption(words: readonly Word[], at: number, level: Compiled): ReadOption {
  const text = words[at]!.text
  const takes = (name: string) => level.values.has(name) || level.scripts.has(name)
  const following = words[at + 1]
  if (level.flags.has(text)) return { names: [text], value: null, next: at + 1, unknown: false }
  if (takes(text)) return { names: [text], value: following?.text ?? null, next: at + 2, unknown: !following }
  if (level.flags.has('-[0-9]') && /^--?[0-9]+$/.test(text))
    return { names: [], value: null, next: at + 1, unknown: false }
  const equals = text.indexOf('=')
  if (text.startsWith('--')) {
    const name = equals > 0 ? text.slice(0, equals) : text
    return { names: [name], value: equals > 0 ? text.slice(equals + 1) : null, next: at + 1, unknown: !takes(name) }
  }
  const names: string[] = []
  for (let index = 1; index < text.length; index += 1) {
    const name = `-${text[index]}`
    names.push(name)
    if (takes(name)) {
      const rest = text.slice(index + 1)
      if (rest !== '') return { names, value: rest, next: at + 1, unknown: false }
      return { names, value: following?.text ?? null, next: at + 2, unknown: !following }
    }
    if (!level.flags.has(name)) return { names, value: null, next: at + 1, unknown: true }
  }
  return { names, value: null, next: at + 1, unknown: false }
}

function collectMount(names: readonly string[], value: string | null, result: Unwrapped): void {
  if (value === null || !names.some((name) => name === '-v' || name === '--volume' || name === '--mount')) return
  const long = /(?:^|,)(?:source|src)=([^,]+).*?,(?:target|dst|destination)=([^,]+)/.exec(value)
  const [outside, inside] = long ? [long[1]!, long[2]!] : value.split(':')
  if (outside?.startsWith('/') && inside?.startsWith('/')) result.mounts.push({ outside, inside })
}

/** Longer than this is no bound to wait for. */
const longestSeconds = 300

function boundsByTimeout(words: readonly Word[], duration: Word | undefined): boolean {
  const found = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(duration?.text ?? '')
  if (!found || !duration!.literal) return false
  const seconds = Number(found[1]) * ({ s: 1, m: 60, h: 3600, d: 86_400 }[found[2] || 's'] ?? Number.NaN)
  // Signal 0 and those that a program may ignore for ever end nothing.
  const signalled = words.some((word) => /^(?:-[a-z]*s|--signal)/.test(word.text))
  return seconds > 0 && seconds <= longestSeconds && !signalled
}

function unwrapShell(words: readonly Word[], input: string | null, piped: boolean): Unwrapped {
  const result = empty()
  let at = 1
  let fromOption = false
  for (; at < words.length; at += 1) {
    const text = words[at]!.text
    if (text === '--') {
      at += 1
      break
    }
    if (!/^[-+]./.test(text)) break
    if (/^-[a-zA-Z]*c[a-zA-Z]*$/.test(text)) fromOption = true
    if (!/^-[ceux]+$/.test(text)) result.why ??= asks(words[at]!, 'changes how the script runs')
    if (/^[-+][a-zA-Z]*[oO]$/.test(text) || text === '--rcfile' || text === '--init-file') at += 1
  }
  const operand = words[at]
  if (fromOption && operand) {
    if (words.length > at + 1) result.why ??= asks(words[at + 1]!, 'is an argument of the script')
    result.inner.push(script(operand.text, words.slice(0, at), words.slice(at + 1)))
    return result
  }
  result.why = asks(operand ?? words[0]!, operand ? 'is a script that nobody has read' : 'runs what it reads')
  if (input !== null) result.inner.push(script(input))
  else result.interactive = !operand && !piped
  return result
}

const baseName = (text: string): string => text.slice(text.lastIndexOf('/') + 1)

type Special = (words: readonly Word[], input: string | null) => Unwrapped | null

const specials: ReadonlyMap<string, Special> = new Map<string, Special>([
  ['find', unwrapFind],
  ['xargs', unwrapXargs],
  ['parallel', unwrapParallel],
  [
    'trap',
    (words) =>
      words[1] ? { ...empty(), inner: [script(words[1].text)], why: asks(words[0]!, 'runs a command later') } : null,
  ],
  [
    'alias',
    (words) => ({
      ...empty(),
      inner: words.slice(1).map((word) => script(word.text.slice(word.text.indexOf('=') + 1))),
      why: asks(words[0]!, 'gives a command another name'),
    }),
  ],
  [
    'command',
    (words) => (/^-[pvV]*[vV]/.test(words[1]?.text ?? '') ? null : unwrapByTable(words, table.get('command')!)),
  ],
])

/** `find … -exec command {} ;`: what is found becomes an operand, so nobody knows the operands before it runs. */
function unwrapFind(words: readonly Word[]): Unwrapped | null {
  const result = empty()
  for (let at = 1; at < words.length; at += 1) {
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(words[at]!.text)) continue
    const rest = words.slice(at + 1)
    const end = rest.findIndex((word) => word.text === ';' || word.text === '+')
    result.inner.push(argv(rest.slice(0, end < 0 ? rest.length : end)))
    result.why ??= asks(words[at]!, 'runs a command on whatever is found')
  }
  return result.inner.length > 0 ? result : null
}

const xargsTable = compile({
  flags:
    '-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit --open-tty -i -e -l --replace --eof --max-lines',
  values: '-a -d -E -I -J -L -n -P -R -s --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var',
  rest: 'argv',
})

function unwrapXargs(words: readonly Word[], input: string | null): Unwrapped | null {
  const result = unwrapByTable(words, xargsTable)!
  result.why ??= asks(words[0]!, 'takes operands from its input')
  return withArguments(result, input === null ? [] : [input.split(/\s+/).filter((word) => word !== '')], words)
}

const parallelTable = compile({
  flags: `-k -q -X -m -t -u -0 -v --keep-order --quote --eta --bar --progress --dry-run --verbose --ungroup --line-buffer --tag --null
    --nonall --onall --pipe --xargs --will-cite --no-notice --group`,
  values: `-j -P -S -a -I -n -N -L -d -C --jobs --sshlogin --slf --sshloginfile --arg-file --max-args --delimiter --colsep --delay
    --timeout --retries --joblog --results --workdir --wd --tmpdir --halt --load --memfree --env --block --max-procs --basefile`,
  rest: 'argv',
})

function unwrapParallel(words: readonly Word[], input: string | null): Unwrapped | null {
  const colon = words.findIndex((word) => /^:::/.test(word.text))
  const head = colon < 0 ? words : words.slice(0, colon)
  const sources: string[][] = []
  for (const word of colon < 0 ? [] : words.slice(colon)) {
    if (/^:::/.test(word.text)) sources.push([])
    else sources.at(-1)!.push(word.text)
  }
  if (colon < 0 && input !== null) sources.push(input.split('\n').filter((line) => line !== ''))
  const result = unwrapByTable(head, parallelTable)!
  result.why ??= asks(words[0]!, 'takes operands from its input')
  // parallel gives each line to a shell, so a bare argument is a command.
  if (result.inner.every((inner) => inner.kind === 'argv')) {
    result.inner = [...result.inner, ...sources.flat().map((argument) => script(argument))]
  }
  return withArguments(result, sources, words)
}

/** More than these are not spelled out; each further one is of the same kind. */
const mostArguments = 16

/** The commands as they will be with each argument in its place, for the hard list. */
function withArguments(result: Unwrapped, sources: readonly string[][], words: readonly Word[]): Unwrapped {
  const replace = replacement(words)
  for (const inner of result.inner) {
    if (inner.kind !== 'argv') continue
    for (const argument of sources.flat().slice(0, mostArguments)) {
      const put = (text: string) => (replace ? text.replaceAll(replace, argument) : text.replace(/\{\d*\}/g, argument))
      const filled = inner.words.map((word) => ({ ...word, text: put(word.text) }))
      const placed = filled.some((word, index) => word.text !== inner.words[index]!.text)
      result.guesses.push(placed ? filled : [...filled, { ...filled[0]!, text: argument, literal: false }])
    }
  }
  return result
}

/** What `xargs -I` replaces. */
function replacement(words: readonly Word[]): string | null {
  for (const [index, word] of words.entries()) {
    if (word.text === '-I' || word.text === '-J') return words[index + 1]?.text || null
    const attached = /^(?:-I|-i|--replace=)(.+)$/.exec(word.text)
    if (attached) return attached[1]!
  }
  return null
}
