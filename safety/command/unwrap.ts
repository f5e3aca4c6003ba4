import type { Word } from './parse.ts'
import { inputRunners, shells } from './shells.ts'
import { argv, asks, empty, script, type Unwrapped } from './unwrapped.ts'
import { compile, table, unwrapByTable } from './wrapper.ts'

/** Finds the commands that a command runs. */

/** What a command runs besides itself; null when it is no wrapper. `input` is what it reads, where that is known. */
export function unwrap(
  name: string,
  words: readonly Word[],
  input: string | null,
  piped: boolean,
  fed: Fed = null,
): Unwrapped | null {
  if (shells.has(name) && !onlyTells(words)) return unwrapShell(words, input, piped)
  const content = inputRunners.has(name) ? words[1]?.content : undefined
  if (content !== undefined) return { ...empty(), inner: [script(content)], why: asks(null, 'runs a script') }
  if (inputRunners.has(name))
    return input === null
      ? null
      : { ...empty(), inner: [script(input)], readsInput: true, why: asks(null, 'runs its input') }
  const special = specials.get(name)
  if (special) return special(words, input, fed)
  // With `-u` runuser takes a command behind its options, without it is `su`.
  // These have words of their own that run nothing.
  if ((name === 'numactl' || name === 'ansible' || shells.has(name)) && onlyTells(words)) return null
  const isSu = name === 'runuser' && !words.some(({ text }) => /^(?:-u|--user)/.test(text))
  const wrapper = table.get(isSu ? 'su' : name)
  return wrapper ? unwrapByTable(words, wrapper) : null
}

const onlyTells = (words: readonly Word[]): boolean =>
  words.length === 2 &&
  /^(?:--version|--hardware|--show|-H|-s)$/.test(words[1]!.text) &&
  (words[0]!.text === 'numactl' || words[1]!.text === '--version')

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
  if (operand?.content !== undefined) result.inner.push(script(operand.content))
  result.why = asks(operand ?? words[0]!, operand ? 'is a script that nobody has read' : 'runs what it reads')
  if (input !== null) {
    result.inner.push(script(input))
    result.readsInput = true
  } else result.interactive = !operand && !piped
  return result
}

type Special = (words: readonly Word[], input: string | null, fed: Fed) => Unwrapped | null

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

/**
 * `find … -exec command {} ;`: what is found becomes an operand. Below roots that are plain, that is a path of a known pattern, and the
 * command is judged with it; find itself is judged without what it runs.
 */
function unwrapFind(words: readonly Word[]): Unwrapped | null {
  const result = empty()
  const own: Word[] = [words[0]!]
  const found = whatIsFound(words)
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at]!
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(word.text)) {
      own.push(word)
      continue
    }
    const rest = words.slice(at + 1)
    const end = rest.findIndex(({ text }) => text === ';' || text === '+')
    const command = rest.slice(0, end < 0 ? rest.length : end)
    const isPlain = found !== null && end >= 0 && /^-exec(?:dir)?$/.test(word.text) && command[0]?.text !== '{}'
    if (!isPlain || command.some(({ text }) => text !== '{}' && text.includes('{}')))
      result.why ??= asks(word, 'runs a command on whatever is found')
    result.inner.push(argv(isPlain ? command.map((one) => (one.text === '{}' ? found : one)) : command))
    result.guesses.push(command)
    at += end < 0 ? rest.length : end + 1
  }
  if (result.inner.length === 0) return null
  result.inner.push(argv(own))
  result.judged = true
  return result
}

/** A word for every path that `find` may come to, as a pattern; null where its roots are not plain. */
export function whatIsFound(words: readonly Word[]): Word | null {
  const from = words.slice(1).findIndex(({ text }) => /^[-(!]/.test(text) && !/^-[HLP]$/.test(text))
  const roots = words.slice(1, from < 0 ? undefined : from + 1).filter(({ text }) => !/^-[HLP]$/.test(text))
  const isPlain =
    roots.length === 1 && roots[0]!.literal && /^\/[\w./-]+$/.test(roots[0]!.text) && !roots[0]!.text.includes('..')
  if (!isPlain || words.some(({ text }) => /^-(?:L|follow)$/.test(text))) return null
  const root = roots[0]!.text.replace(/\/+$/, '')
  const texts = words.map(({ text }) => text)
  const at = texts.indexOf('-name')
  const isAlone = at > 0 && !texts.some((text) => /^(?:-o|-or|,|!|-not|\()$/.test(text))
  const name = isAlone && /^[\w.*-]+$/.test(texts[at + 1] ?? '') ? texts[at + 1]! : '*'
  // Hidden names are found as well, which a `*` of a shell would leave out.
  const pattern = name.startsWith('*') && name === '*' ? `${root}/**` : `${root}/**/${name}`
  return { text: pattern, literal: false, quoting: 'bare', pattern, found: true }
}

const xargsTable = compile({
  flags:
    '-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit --open-tty -i -e -l --replace --eof --max-lines',
  values: '-a -d -E -I -J -L -n -P -R -s --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var',
  rest: 'argv',
})

/** What a command before `xargs` hands it, by its kind. */
export type Fed = { kind: 'numbers' | 'names' } | { kind: 'paths'; found: Word; separated: boolean } | null

/** No process of importance: a write that is filled with it is asked about like any other. */
const number: Word = { text: '4711', literal: true, quoting: 'bare', pattern: null }
const name: Word = { text: 'a1', literal: true, quoting: 'bare', pattern: null }

/**
 * The command of `xargs` with what it will be given: words that are known, numbers and names of known form, or paths below a known
 * root. Null where that is not known.
 */
function fillXargs(result: Unwrapped, words: readonly Word[], input: string | null, fed: Fed): Unwrapped | null {
  const [inner] = result.inner
  if (result.why !== null && result.why.word !== words[0]) return null
  if (result.inner.length !== 1 || inner?.kind !== 'argv' || !inner.words[0]) return null
  if (
    inner.before.some(({ text }) =>
      /^(?:-p|-a|-o|-t|-x|--interactive|--arg-file|--open-tty|--process-slot-var)/.test(text),
    )
  )
    return null
  const operands = operandsFor(inner.words[0].text, words, input, fed)
  if (!operands) return null
  const replace = replacement(words)
  const filled = replace
    ? operands.map((operand) =>
        argv(
          inner.words.map((word) => (word.text === replace ? operand : word)),
          inner.before,
        ),
      )
    : [argv([...inner.words, ...operands], inner.before)]
  if (replace && inner.words.some(({ text }) => text !== replace && text.includes(replace))) return null
  return {
    ...result,
    inner: filled,
    guesses: [
      ...withArguments(result, input === null ? [] : [input.split(/\s+/)], words).guesses,
      [...inner.words, ...operands],
    ],
    why: null,
    judged: true,
  }
}

/** These print nothing of a file's content, whatever they are given. */
const inert: ReadonlySet<string> = new Set('ls stat du file basename dirname readlink realpath wc'.split(' '))

function operandsFor(program: string, words: readonly Word[], input: string | null, fed: Fed): Word[] | null {
  if (input !== null) {
    const given = input.split(/\s+/).filter((text) => text !== '')
    if (given.length > mostArguments || given.some((text) => !/^[\w./:@+-]+$/.test(text))) return null
    return given.map((text) => ({ ...name, text }))
  }
  switch (fed?.kind) {
    case 'numbers':
      return [number]
    case 'names':
      return [name]
    case 'paths': {
      // A blank in a name makes two words of it, of which the second is somebody else's path.
      const isWhole = fed.separated && words.some(({ text }) => /^(?:-[a-z]*0[a-z]*|--null)$/.test(text))
      return isWhole || inert.has(program) ? [fed.found] : null
    }
    default:
      return null
  }
}

function unwrapXargs(words: readonly Word[], input: string | null, fed: Fed): Unwrapped | null {
  const result = unwrapByTable(words, xargsTable)!
  const filled = fillXargs(result, words, input, fed)
  if (filled) return filled
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

/** More than these are not spelled out one by one. */
const mostArguments = 16

/** The commands as they will be with each argument in its place, for the hard list. */
function withArguments(result: Unwrapped, sources: readonly string[][], words: readonly Word[]): Unwrapped {
  const replace = replacement(words)
  for (const inner of result.inner) {
    if (inner.kind !== 'argv') continue
    const all = sources.flat().slice(mostArguments)
    if (all.length > 0 && inner.words[0]) {
      const rest = all.map((text) => ({ ...inner.words[0]!, text, literal: false }))
      result.guesses.push([...inner.words, ...rest])
    }
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
    if (word.text === '-i' || word.text === '--replace') return '{}'
  }
  return null
}
