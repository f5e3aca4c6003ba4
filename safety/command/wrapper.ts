import { kindOfNames, namespaceOf } from './known-names.ts'
import type { Word } from './parse.ts'
import { argv, asks, empty, script, shells, type Unwrapped } from './unwrapped.ts'
import { type Wrapper, wrappers } from './wrappers.ts'

/** Reads the words of a wrapper by its entry in the table. */

type CompiledWrapper = {
  wrapper: Wrapper
  flags: Set<string>
  values: Set<string>
  scripts: Set<string>
  alters: Set<string>
  tty: Set<string>
  commands: Map<string, CompiledWrapper> | null
}

const list = (text: string | undefined): string[] => text?.split(/\s+/).filter((word) => word !== '') ?? []

export function compile(wrapper: Wrapper, outer?: CompiledWrapper): CompiledWrapper {
  const compiled: CompiledWrapper = {
    wrapper,
    flags: new Set([...(outer?.flags ?? []), ...list(wrapper.flags), ...list(wrapper.tty)]),
    values: new Set([...(outer?.values ?? []), ...list(wrapper.values)]),
    scripts: new Set(list(wrapper.scripts)),
    alters: new Set([...(outer?.alters ?? []), ...list(wrapper.alters)]),
    tty: new Set(list(wrapper.tty)),
    commands: null,
  }
  for (const flag of [...list(wrapper.flags), ...list(wrapper.tty)]) compiled.values.delete(flag)
  for (const value of list(wrapper.values)) compiled.flags.delete(value)
  if (wrapper.commands) {
    compiled.commands = new Map(
      Object.entries(wrapper.commands).map(([name, inner]) => [name, compile(inner, compiled)]),
    )
  }
  return compiled
}

export const table = new Map([...wrappers].map(([name, wrapper]) => [name, compile(wrapper)]))

const joined = (words: readonly Word[]): string => words.map((word) => word.text).join(' ')
const isAssignment = (text: string | undefined): boolean => text !== undefined && /^[^-=][^=]*=/.test(text)
const baseName = (text: string): string => text.slice(text.lastIndexOf('/') + 1)

export function unwrapByTable(words: readonly Word[], start: CompiledWrapper): Unwrapped | null {
  const result = empty()
  const operands: Word[] = []
  const given: [string, string][] = []
  let level = start
  let unknownAt: number | null = null
  let scripted = false
  let ended = false
  let at = 1
  const doubt = (word: Word, text: string) => {
    result.askReason ??= asks(word, text)
  }
  while (at < words.length) {
    const word = words[at]!
    const text = word.text
    const wanted = level.commands ? 1 : (level.wrapper.before ?? 0) - operands.length
    if (text === '--') {
      at += 1
      if (wanted > 0) continue
      // Ends the options at `--`; assignments of variables may still follow.
      if (!level.wrapper.assignments || !isAssignment(words[at]?.text)) break
      ended = true
      continue
    }
    const optionsAllowed = !ended && (operands.length === 0 || level.wrapper.interspersed === true)
    if (optionsAllowed && (text.startsWith('-') || level.flags.has(text)) && (text !== '-' || level.flags.has('-'))) {
      const option = readOption(words, at, level)
      if (option.unknown) unknownAt ??= at
      const isInert = option.value !== null && new RegExp(level.wrapper.inertValues ?? '^$').test(option.value)
      if (option.unknown || (!isInert && option.names.some((name) => level.alters.has(name))))
        doubt(word, 'changes how the command inside runs')
      if (option.names.some((name) => level.tty.has(name))) result.tty.push(at)
      if (option.names.some((name) => level.scripts.has(name)) && option.value !== null) {
        result.inner.push(script(option.value, words.slice(0, option.next - 1), words.slice(option.next)))
        doubt(word, 'runs a script')
        scripted = true
      }
      collectMount(option.names, option.value, result)
      const last = option.names.at(-1)
      if (last !== undefined && option.value !== null) given.push([last, option.value])
      at = option.next
    } else if (level.wrapper.assignments && isAssignment(text)) {
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
  return finish(words, { at, level, operands, given, scripted, unknownAt }, result)
}

/** The place up to which a wrapper's options were read, and the findings so far. */
type ReadUpTo = {
  at: number
  level: CompiledWrapper
  operands: Word[]
  given: [string, string][]
  scripted: boolean
  unknownAt: number | null
}

function finish(words: readonly Word[], read: ReadUpTo, result: Unwrapped): Unwrapped {
  const { at, operands, scripted, unknownAt } = read
  const { wrapper } = read.level
  const rest = words.slice(at)
  const program = rest[0]?.text ?? ''
  if (wrapper.programs && !list(wrapper.programs).includes(program))
    result.askReason ??= asks(words[0]!, `may run something else under the name ${program}`)
  if (wrapper.place === 'host') result.hosts.push(...operands)
  if (wrapper.place === 'name') {
    result.names.push(...operands)
    result.within = { kind: kindOfNames(words), namespace: namespaceOf(read.given) }
  }
  result.root = wrapper.adds === 'root'
  if (wrapper.adds === undefined)
    result.askReason ??= asks(words[0]!, 'runs another command in a way that a person must review')
  if (wrapper.rest === 'shell' && rest.length > 0) result.inner.push(script(joined(rest), words.slice(0, at)))
  else if (wrapper.rest === 'argv' && rest.length > 0 && !scripted) result.inner.push(argv(rest, words.slice(0, at)))
  if (result.inner.length === 0) {
    result.askReason ??= asks(words[0]!, 'lacks a command to run')
    result.interactive = wrapper.adds === 'place' || wrapper.adds === 'root'
  }
  const name = baseName(words[0]!.text)
  if (name === 'timeout') {
    result.bounds = boundsByTimeout(words, operands[0])
    // Needs approval for a timeout in the foreground, which ends only its own command, while the
    // children of that command continue.
    const isAlone = words.slice(0, at).some(({ text }) => /^(?:-[a-z]*f|--f)/.test(text))
    if (isAlone && beginsOthers(baseName(rest[0]?.text ?? '')))
      result.askReason ??= asks(words[0]!, 'ends only the shell in the foreground, not what that started')
  }
  if (name === 'watch') result.endless = true
  return unknownAt === null ? result : guess(words, unknownAt, result)
}

/** Tries each of the next words after an unknown option as the beginning of the command. */
function guess(words: readonly Word[], unknownAt: number, result: Unwrapped): Unwrapped {
  result.askReason ??= asks(words[unknownAt]!, 'is an unknown option')
  for (let at = unknownAt + 1; at <= unknownAt + 3 && at < words.length; at += 1)
    result.candidates.push(words.slice(at))
  return result
}

type ReadOption = { names: string[]; value: string | null; next: number; unknown: boolean }

function readOption(words: readonly Word[], at: number, level: CompiledWrapper): ReadOption {
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

const beginsOthers = (name: string): boolean => shells.has(name) || wrappers.has(name) || name === 'xargs'

/** Most seconds for which a timeout counts as a bound. */
const maxSeconds = 300

function boundsByTimeout(words: readonly Word[], duration: Word | undefined): boolean {
  const found = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(duration?.text ?? '')
  if (!found || !duration!.literal) return false
  const seconds = Number(found[1]) * ({ s: 1, m: 60, h: 3600, d: 86_400 }[found[2] || 's'] ?? Number.NaN)
  // Refuses signal 0, which ends nothing, and signals that a program may ignore.
  const isWeaker = words.some((word) => /^(?:-[a-z]*s|--signal|--foreground)/.test(word.text))
  return seconds > 0 && seconds <= maxSeconds && !isWeaker
}
