import type { Word as BashWord, ParsedScript, SyntaxNode, WordPart } from 'unbash'
import { mark, type Tree, type Word } from './tree.ts'

/** The words of a command: which of them are known before the command runs, and which by a sample. */

/** What these print is of a known form, whatever it is: a word with it is judged by a sample. */
const samples: readonly { program: RegExp; sample: string; option?: RegExp }[] = [
  { program: /^(?:pgrep|pidof)$/, sample: '4711', option: /^(?:-[a-z]*[al]|--list)/ },
  { program: /^(?:nproc|whoami|uname)$/, sample: 'a1', option: /^-[a-z]*[av]|^--(?:all|kernel-version)/ },
  { program: /^hostname$/, sample: 'localhost', option: /^-[a-zA-Z]*[IA]|^--all/ },
]

/** `scripts`: the substitutions that the sample stands for. */
type Sample = { word: Word; scripts: ParsedScript[] }

/** An argument with a loop's variable, or with a substitution of known form, as one that is known; null where it is neither. */
export function readSample(node: BashWord, tree: Tree): Sample | null {
  if (!node.parts || !/[$`]/.test(node.text)) return null
  let text = ''
  const scripts: ParsedScript[] = []
  const add = (part: WordPart, quoted: boolean): boolean => {
    if (part.type === 'Literal' || part.type === 'SingleQuoted') text += part.value
    else if (part.type === 'DoubleQuoted') return part.parts.every((inner) => add(inner, true))
    else if (part.type === 'CommandExpansion') {
      const sample = part.script && sampleOf(part.script, quoted)
      if (!sample || !part.script) return false
      text += sample
      scripts.push(part.script)
    } else {
      const name = /^\$(?:\{(\w+)\}|(\w+))$/.exec('text' in part ? part.text : '')
      const value = name && tree.rounds?.get(name[1] ?? name[2]!)
      if (value === null || value === undefined || (!quoted && !/^[\w./:@%+=,-]+$/.test(value))) return false
      text += value
    }
    return true
  }
  if (!node.parts.every((part) => add(part, false))) return null
  return { word: { text, literal: true, quoting: 'bare', pattern: null }, scripts }
}

function sampleOf(script: ParsedScript, quoted: boolean): string | null {
  const [statement, another] = script.commands
  if (another || statement?.command.type !== 'Command' || statement.background) return null
  const { name, prefix, suffix } = statement.command
  if (!name || name.parts || prefix.length > 0 || suffix.some(({ type }) => type !== 'Word')) return null
  const texts = suffix.map((part) => (part as BashWord).value)
  // A date is what its format says: figures and the letters that stand in it.
  if (name.value === 'date') {
    const format = texts.find((text) => text.startsWith('+'))
    const isPlain = format !== undefined && /^\+(?:%[YmdHMSFTbeyjsuVBaRDk]|[\w:.,/_T-]|[ ])+$/.test(format)
    return isPlain && (quoted || !format.includes(' ')) ? '2026-01-01' : null
  }
  const found = samples.find(({ program }) => program.test(name.value))
  if (!found || texts.some((text) => found.option?.test(text))) return null
  // Several numbers are several words, of which each is one number.
  return found.sample
}

/** A word, and whether it is known before it runs. `lookInside` gets each part that is not. */
export function readWord(node: BashWord, tree: Tree, lookInside: (part: WordPart) => void): Word {
  const parts = node.parts
  const tilde = /^~[^/]/.test(node.text) && !/^~[a-z_][\w-]*(\/|$)/.test(node.text)
  // `~+`, `~-` and `~3` are variables of the shell under another name.
  if (tilde) mark(tree, 'tilde', node.text)
  if (!parts) {
    return { text: node.value, literal: !tilde, quoting: node.text === node.value ? 'bare' : 'split', pattern: null }
  }
  let literal = !tilde
  let pattern: string | null = ''
  for (const part of parts) {
    const quoted = part.type === 'SingleQuoted' || part.type === 'DoubleQuoted'
    const known = part.type === 'Literal' || part.type === 'SingleQuoted' || onlyLiterals(part)
    if (!known) literal = false
    if (part.type === 'Glob') pattern = pattern === null ? null : pattern + part.text
    else if (known && !quoted && part.type === 'Literal') pattern = pattern === null ? null : pattern + part.value
    else pattern = null
    if (!known && part.type !== 'Glob') lookInside(part)
  }
  const whole = parts.length === 1 && (parts[0]!.type === 'SingleQuoted' || parts[0]!.type === 'DoubleQuoted')
  const bare =
    parts.every((part) => part.type !== 'SingleQuoted' && part.type !== 'DoubleQuoted') && !node.text.includes('\\')
  return {
    text: node.value,
    literal,
    quoting: whole ? 'whole' : bare ? 'bare' : 'split',
    pattern: literal || tilde || !bare || pattern === null ? null : boundedPattern(pattern),
  }
}

const onlyLiterals = (part: SyntaxNode): boolean =>
  part.type === 'DoubleQuoted' && part.parts.every((inner) => inner.type === 'Literal')

/** More wildcards than anybody needs cost time without end to compare. */
const mostWildcards = 6

function boundedPattern(pattern: string): string | null {
  const short = pattern.replace(/\*+/g, '*')
  return (short.match(/[*?[]/g)?.length ?? 0) > mostWildcards || short.length > 200 ? null : short
}
