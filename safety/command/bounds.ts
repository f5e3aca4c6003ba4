import type { Bound } from './analysis.ts'
import { hasOption, type Reading, type Value } from './options.ts'
import type { Word } from './parse.ts'

/** Whether a command ends by itself, apart from what it does; and the form of it that ends. */

/** `words` is the bounded form; null when there is none, empty when the command is best left out of its pipe. */
export type EndlessCommand = { bound: Bound; words: readonly string[] | null }

/** They wait for a key. The first group shows a file, so the beginning of the file is the same, bounded. */
const viewers: ReadonlySet<string> = new Set(['less', 'more', 'most', 'pg', 'view'])
const editors: ReadonlySet<string> = new Set(
  'man info vi vim nvim vimdiff nano pico emacs ed ex joe jed micro mc mcedit crontab-e visudo vipw'.split(' '),
)
const screens: ReadonlyMap<string, readonly string[] | null> = new Map([
  ['htop', ['top', '-b', '-n', '1']],
  ['btop', ['top', '-b', '-n', '1']],
  ['atop', null],
  ['glances', null],
  ['bmon', null],
  ['nload', null],
  ['iftop', null],
  ['nethogs', null],
  ['slabtop', null],
  ['powertop', null],
  ['yes', null],
])
const prompts =
  /^(?:python[\d.]*|node|irb|ghci|lua|php|perl|ruby|R|julia|bc|dc|mysql|mariadb|psql|sqlite3|redis-cli|mongo|mongosh|clickhouse-client|cqlsh|ftp|sftp|telnet|nslookup|fdisk|parted|gdb|screen|tmux)$/

/** By name alone, for programs that no grammar tells about. */
export function unboundedByName(name: string, words: readonly Word[], piped: boolean): EndlessCommand | null {
  if (viewers.has(name)) return { bound: 'pager', words: viewed(words, piped) }
  if (editors.has(name)) return { bound: 'pager', words: null }
  if (screens.has(name)) return { bound: 'unbounded_stream', words: screens.get(name)! }
  if (!piped && words.length === 1 && prompts.test(name)) return { bound: 'interactive_repl', words: null }
  return null
}

function viewed(words: readonly Word[], piped: boolean): readonly string[] | null {
  if (piped && words.length === 1) return []
  const [, file, more] = words
  return file && !more && file.literal && !/^[-+]/.test(file.text) ? ['head', '-n', '200', file.text] : null
}

/** By the grammar: an option or a lone interval that makes it endless, and nothing that bounds it. */
export function unboundedByGrammar(
  name: string,
  reading: Reading,
  words: readonly Word[],
  piped: boolean,
): EndlessCommand | null {
  if (reading.problem) {
    // One operand names a data base; a second one is what to do with it.
    const waits = reading.problem.missing && reading.operands.length < 2 && !piped && prompts.test(name)
    return waits ? { bound: 'interactive_repl', words: null } : null
  }
  for (const { endless } of reading.grammars) {
    if (!endless) continue
    if (endless.unless?.some((option) => hasOption(reading, option)) && !reading.values.some(isNoBound)) continue
    const { when } = endless
    const hit =
      when === 'always' ||
      (when === 'period' && reading.operands.length === 2) ||
      (when === 'interval'
        ? reading.operands.filter((word) => /^\d+(?:\.\d+)?$/.test(word.text)).length === 1 ||
          reading.operands.some((word) => /^\d{6,}$/.test(word.text))
        : when !== 'period' && when.some((option) => hasOption(reading, option)))
    if (hit)
      return { bound: 'unbounded_stream', words: endless.instead && bounded(reading, words, enough(endless, reading)) }
  }
  return null
}

/** A number that nobody waits for. Ids of processes have seven digits at most. */
const isNoBound = ({ kind, word }: Value): boolean => kind === 'number' && /^\d{8,}$/.test(word.text)

type Endless = NonNullable<Reading['grammars'][number]['endless']>

/** What to drop and to put in; nothing is put in where the command already says how much it wants. */
function enough({ enough, instead }: Endless, reading: Reading): NonNullable<Endless['instead']> {
  const { drop, add } = instead!
  return { drop, add: enough?.some((option) => hasOption(reading, option)) ? [] : add }
}

/** The words without the options that make it endless, and with those that bound it. */
function bounded(
  reading: Reading,
  words: readonly Word[],
  { drop, add }: { drop: readonly string[]; add: readonly string[] },
): readonly string[] | null {
  const texts: (string | null)[] = words.map((word) => word.text)
  for (const option of reading.found) {
    if (!drop.includes(option.name)) continue
    const text = texts[option.at]
    if (!option.clustered) texts[option.at] = null
    else if (text) texts[option.at] = text.replace(option.name.slice(1), '')
    if (option.valueAt !== null) texts[option.valueAt] = null
  }
  const kept = texts.map((text) => (text === '-' ? null : text))
  const options = add.filter((text) => text.startsWith('-') || add[0]!.startsWith('-'))
  const operands = add.filter((text) => !options.includes(text))
  const head = kept.slice(0, reading.chosenAt + 1)
  const tail = kept.slice(reading.chosenAt + 1)
  return [...head, ...options, ...tail, ...operands].filter((text) => text !== null)
}
