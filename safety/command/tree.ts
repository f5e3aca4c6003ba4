import { forEachChild, type SyntaxNode } from 'unbash'
import type { Constants } from './words.ts'

/** What the shell parser's tree becomes: plain data for everything after it. */

/** Parts of a text besides simple commands joined by `|`, `&&`, `||`, `;`, newlines. Each asks. */
type ShellShape =
  | 'substitution'
  | 'process substitution'
  | 'expansion'
  | 'arithmetic'
  | 'glob'
  | 'brace'
  | 'ANSI-C quoting'
  | 'locale quoting'
  | 'tilde'
  | 'group'
  | 'control flow'
  | 'function'
  | 'fork bomb'
  | 'background'
  | 'coproc'
  | 'here-document'
  | 'here-string'
  | 'test'
  | 'array'
  | 'unknown'

export type Word = {
  /** The word after quote removal; what could not be known stands as it was written. */
  text: string
  /** True when the text is exactly what the program receives. */
  literal: boolean
  /**
   * `bare`: no quotes; `whole`: one pair of quotes round the word; `split`: quotes or backslashes
   * inside it.
   */
  quoting: 'bare' | 'whole' | 'split'
  /** The word as a glob pattern, when globbing is all that happens to it; else null. */
  pattern: string | null
  /** What stands in the file of this name, where the text itself says so: `<(echo ls)`. */
  content?: string
  /** Every path that `find` may come to. */
  found?: true
}

/** The value of a loop's variable. `isPattern`: each path that the shell finds by it. */
type LoopValue = { text: string; isPattern: boolean }

export type Redirection = {
  operator: string
  target: Word
  /** The target as the shell will make it, where that is not as it is written. */
  guess?: Word | null
  source: string
}

export type Simple = {
  /** Stands behind a group, or `|&`: its input is not the command before's output. */
  isAside?: true
  words: Word[]
  /** `isOwn`: a word that the text makes for itself, and that no program obeys. */
  assignments: { name: string; value: Word; plain: boolean; isOwn?: true }[]
  redirections: Redirection[]
  /** Literal text on standard input, where it can be known: a here-document, a here-string. */
  input: string | null
  /** Reads what a command before its group hands on. */
  isFed: boolean
  /**
   * Words as the shell will make them, where they are not plain and the text says enough: for the
   * hard list.
   */
  guesses: Word[][]
  /** Words where a substitution prints nothing, or several: the command runs with these too. */
  others: Word[][]
  /** It stands in a group, a condition or a loop: it may run never, once or often. */
  isInside: boolean
  /** Where it stands in the source. Meaningless for nested ones. */
  start: number
  end: number
}

export type Tree = {
  /** Commands that the text runs as it stands, in order, grouped by pipe. */
  pipelines: Simple[][]
  /** Commands inside substitutions, groups, loops, functions: for the hard list, never run. */
  nested: Simple[][]
  shapes: { shape: ShellShape; text: string }[]
  /** The parser's first complaint. */
  error: string | null
  /** What the text has made known so far. */
  constants: Constants
  /** What commands inside a loop or group read, where that is known. */
  inherited: string | null
  /** Inside a loop or a group that a command hands something on to. */
  isFed: boolean
  /** Variables of written-out loops, with this round's value; null outside of them. */
  rounds: Map<string, LoopValue> | null
  /** Variables that the text sets once, each with a sample; null: set to several. */
  own: Map<string, { text: string; isExact: boolean } | null>
  /** How many && and || stand before this in one list. */
  chance: number
  /** Commands inside loops, which stand in the tree once for each round. */
  unrolled: number
  /** How many groups, conditions and loops are open round what is read. */
  depth: number
}

/** Node types of the shell parser: those without a meaning, and names for the others. */

export const plainNodes = new Set([
  'Script',
  'CompoundList',
  'Word',
  'Assignment',
  'Redirect',
  'Literal',
  'SingleQuoted',
  'DoubleQuoted',
])
export const innerNodes = new Set([
  'FileDescriptor',
  'FileDescriptorVariable',
  'HereDocDelimiter',
  'HereDocBody',
  'CaseItem',
  'Elif',
  'Time',
  'Negation',
  'ArithmeticBinary',
  'ArithmeticUnary',
  'ArithmeticTernary',
  'ArithmeticGroup',
  'ArithmeticWord',
  'TestUnary',
  'TestBinary',
  'TestLogical',
  'TestNot',
  'TestGroup',
  'Default',
  'Remove',
  'Replace',
  'Slice',
  'CaseModification',
  'Transform',
  'Names',
])

export const shapeOf: Readonly<Record<string, ShellShape>> = {
  CommandExpansion: 'substitution',
  ArithmeticCommandExpansion: 'substitution',
  ProcessSubstitution: 'process substitution',
  SimpleExpansion: 'expansion',
  ParameterExpansion: 'expansion',
  ArithmeticExpansion: 'arithmetic',
  ArithmeticCommand: 'arithmetic',
  Glob: 'glob',
  ExtendedGlob: 'glob',
  BraceExpansion: 'brace',
  AnsiCQuoted: 'ANSI-C quoting',
  LocaleString: 'locale quoting',
  Subshell: 'group',
  BraceGroup: 'group',
  Redirected: 'group',
  If: 'control flow',
  For: 'control flow',
  ArithmeticFor: 'control flow',
  While: 'control flow',
  Select: 'control flow',
  Case: 'control flow',
  Function: 'function',
  Coproc: 'coproc',
  HereDoc: 'here-document',
  HereString: 'here-string',
  TestCommand: 'test',
  ArrayValue: 'array',
}

export function mark(tree: Tree, shape: ShellShape, text: string): void {
  tree.shapes.push({ shape, text: text.length > 80 ? `${text.slice(0, 77)}...` : text })
}

/** A function that starts itself through a pipe or in the background doubles with each call. */
export function callsItself(node: SyntaxNode, name: string, multiplied = false): boolean {
  if (node.type === 'Command') return multiplied && node.name?.value === name
  const more = multiplied || node.type === 'Pipeline' || (node.type === 'Statement' && node.background === true)
  let found = false
  forEachChild(node, (child) => {
    found ||= callsItself(child, name, more)
  })
  return found
}
