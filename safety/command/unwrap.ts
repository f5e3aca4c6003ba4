import type { Word } from './parse.ts'
import { asks, empty, inputRunners, script, shells, type Unwrapped } from './unwrapped.ts'
import { compile, table, unwrapByTable } from './wrapper.ts'
import { type InputKind, unwrapFind, unwrapXargs, withArguments } from './xargs.ts'

/** Finds the commands that a command runs. */

/** What a command runs besides itself; null when it is no wrapper. `input` is what it reads, where that is known. */
export function unwrap(
  name: string,
  words: readonly Word[],
  input: string | null,
  piped: boolean,
  fed: InputKind = null,
): Unwrapped | null {
  if (shells.has(name) && !onlyTells(words)) return unwrapShell(words, input, piped)
  const content = inputRunners.has(name) ? words[1]?.content : undefined
  if (content !== undefined) return { ...empty(), inner: [script(content)], askReason: asks(null, 'runs a script') }
  if (inputRunners.has(name))
    return input === null
      ? null
      : { ...empty(), inner: [script(input)], readsInput: true, askReason: asks(null, 'runs its input') }
  const special = specials.get(name)
  if (special) return special(words, input, fed)
  // With `-u` runuser takes a command behind its options, without it is `su`.
  // These have separate words that run nothing.
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
    if (!/^-[ceux]+$/.test(text)) result.askReason ??= asks(words[at]!, 'changes how the script runs')
    if (/^[-+][a-zA-Z]*[oO]$/.test(text) || text === '--rcfile' || text === '--init-file') at += 1
  }
  const operand = words[at]
  // They read a file of the user before any script, and parse otherwise than bash.
  if (/(?:^|\/)(?:zsh|fish|t?csh)$/.test(words[0]!.text))
    result.askReason ??= asks(words[0]!, 'is not a shell that is known to read like bash')
  if (fromOption && operand) {
    if (words.length > at + 1) result.askReason ??= asks(words[at + 1]!, 'is an argument of the script')
    result.inner.push(script(operand.text, words.slice(0, at), words.slice(at + 1)))
    return result
  }
  if (operand?.content !== undefined) result.inner.push(script(operand.content))
  result.askReason = asks(operand ?? words[0]!, operand ? 'is a script that nobody has read' : 'runs what it reads')
  if (input !== null) {
    result.inner.push(script(input))
    result.readsInput = true
  } else result.interactive = !operand && !piped
  return result
}

type Special = (words: readonly Word[], input: string | null, fed: InputKind) => Unwrapped | null

const specials: ReadonlyMap<string, Special> = new Map<string, Special>([
  ['find', unwrapFind],
  ['xargs', unwrapXargs],
  ['parallel', unwrapParallel],
  [
    'trap',
    (words) =>
      words[1]
        ? { ...empty(), inner: [script(words[1].text)], askReason: asks(words[0]!, 'runs a command later') }
        : null,
  ],
  [
    'alias',
    (words) => ({
      ...empty(),
      inner: words.slice(1).map((word) => script(word.text.slice(word.text.indexOf('=') + 1))),
      askReason: asks(words[0]!, 'gives a command another name'),
    }),
  ],
  [
    'command',
    (words) => (/^-[pvV]*[vV]/.test(words[1]?.text ?? '') ? null : unwrapByTable(words, table.get('command')!)),
  ],
])

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
  result.askReason ??= asks(words[0]!, 'takes operands from its input')
  // parallel gives each line to a shell, so a bare argument is a command.
  if (result.inner.every((inner) => inner.kind === 'argv')) {
    result.inner = [...result.inner, ...sources.flat().map((argument) => script(argument))]
  }
  return withArguments(result, sources, words)
}
