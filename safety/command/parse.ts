import {
  type Word as BashWord,
  forEachChild,
  type ParsedScript,
  parse as parseBash,
  type SyntaxNode,
  type WordPart,
} from 'unbash'
import { type Constants, defineWord, noConstants, remember } from './constants.ts'
import { expandValue, expandWords, knownWords, printedByNode } from './expand.ts'
import { follow, isPlain, printedBy } from './follow.ts'
import { innerNodes, plainNodes, shapeOf } from './shapes.ts'
import type { Redirection, Shape, Simple, Tree, Word } from './tree.ts'

export type { Redirection, Shape, Simple, Tree, Word } from './tree.ts'

/**
 * The shell parser behind our own interface. Everything after this file sees plain data: pipelines of simple commands, and a
 * list of words for whatever else was in the text. A node type that the parser may grow one day is `unknown`, which asks.
 */

/**
 * Reads bash text. What the parser cannot read comes back as an error beside everything it could; null when it gave up, so that
 * nothing is known of what is inside.
 */
export function parse(source: string, constants: Constants = noConstants()): Tree | null {
  const tree: Tree = {
    pipelines: [],
    nested: [],
    shapes: [],
    error: null,
    constants,
    inherited: null,
    isFed: false,
    rounds: null,
    unrolled: 0,
    depth: 0,
  }
  try {
    visit(parseBash(source), source, tree, false)
    return tree
  } catch {
    return null
  }
}

function visit(node: SyntaxNode, source: string, tree: Tree, nested: boolean): void {
  switch (node.type) {
    case 'Script': {
      const errors = (node as ParsedScript).errors
      if (errors && errors.length > 0) tree.error ??= errors[0]!.message
      // A script in old-style backticks has its own decoded text, which its positions count in.
      const text = node.source ?? source
      for (const statement of node.commands) visit(statement, text, tree, nested)
      return
    }
    case 'Statement':
      if (node.background) mark(tree, 'background', '&')
      visit(node.command, source, tree, nested)
      return
    case 'AndOr':
      for (const part of node.commands) visit(part, source, tree, nested)
      return
    case 'Pipeline': {
      const simples: Simple[] = []
      let printed: string | null = null
      for (const command of node.commands) {
        if (command.type !== 'Command') {
          const { inherited, isFed } = tree
          tree.inherited = printed ?? inherited
          tree.isFed = isFed || command !== node.commands[0]
          visit(command, source, tree, nested)
          Object.assign(tree, { inherited, isFed })
          printed = printedByNode(command, tree.constants)
          continue
        }
        const made = simple(command, source, tree)
        made.input ??= printed
        printed = printedBy(made)
        simples.push(made)
      }
      if (simples.length > 0) (nested ? tree.nested : tree.pipelines).push(simples)
      return
    }
    case 'Command':
      ;(nested ? tree.nested : tree.pipelines).push([simple(node, source, tree)])
      return
    case 'Subshell':
    case 'BraceGroup':
    case 'If':
    case 'CompoundList':
    case 'Elif':
      // What is inside runs, some of it or all of it: each command is judged as one that does.
      if (nested) visitOther(node, source, tree)
      else inside(tree, () => forEachChild(node, (child) => visit(child, source, tree, false)))
      return
    case 'For':
      if (nested || !visitRounds(node, source, tree)) visitOther(node, source, tree)
      return
    default:
      visitOther(node, source, tree)
  }
}

function inside(tree: Tree, read: () => void): void {
  tree.depth += 1
  read()
  tree.depth -= 1
}

/** More rounds of a loop, and more commands in all its rounds, are not written out. */
const mostRounds = 16
const mostUnrolled = 200

/** `for h in a b; do …; done` as its rounds, where the words are known; false where they are not. */
function visitRounds(node: Extract<SyntaxNode, { type: 'For' }>, source: string, tree: Tree): boolean {
  const name = node.name.value
  // An upper-case name may be one that programs obey.
  if (!node.wordlist || !/^[a-z]\w*$/.test(name) || tree.rounds?.has(name)) return false
  const values = knownWords(node.wordlist, tree.constants)
  if (!values || values.length > mostRounds || tree.unrolled > mostUnrolled) return false
  tree.rounds ??= new Map()
  const { rounds } = tree
  for (const value of values) {
    rounds.set(name, value)
    remember(tree.constants, name, [value])
    inside(tree, () => visit(node.body, source, tree, false))
    tree.unrolled += 1
  }
  rounds.delete(name)
  if (rounds.size === 0) tree.rounds = null
  return true
}

/** Marks what is not a simple command, and looks for commands inside it. */
function visitOther(node: SyntaxNode, source: string, tree: Tree): void {
  const shape = shapeOf[node.type]
  if (shape) mark(tree, shape, source.slice(node.pos, node.end))
  else if (!plainNodes.has(node.type) && !innerNodes.has(node.type)) mark(tree, 'unknown', node.type)
  if ((node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution') && !node.script) {
    tree.error ??= 'a substitution that cannot be read'
  }
  if (node.type === 'Function')
    defineWord(tree.constants, 'functions', node.name.value, source.slice(node.body.pos, node.body.end))
  if (node.type === 'For' && node.wordlist) {
    for (const { text } of expandWords(node.wordlist, tree.constants, 0).slice(0, 8))
      remember(tree.constants, node.name.value, [text])
  }
  if (node.type === 'Function' && callsItself(node, node.name.value)) mark(tree, 'fork bomb', node.name.value)
  const outer = tree.inherited
  if (node.type === 'Redirected') {
    tree.inherited = redirectedInput(node, tree) ?? outer
    // What all of a group writes to is held against the hard list like what one command writes to.
    const redirections = node.redirects.flatMap((part) =>
      part.type === 'Redirect'
        ? [
            {
              operator: part.operator,
              ...redirected(part.target, source, tree),
              source: source.slice(part.pos, part.end),
            },
          ]
        : [],
    )
    tree.nested.push([{ ...emptySimple(tree), redirections }])
  }
  forEachChild(node, (child) => visit(child, source, tree, true))
  tree.inherited = outer
}

/** What a loop or a group reads by `<<<` or `<<`. */
function redirectedInput({ redirects }: Extract<SyntaxNode, { type: 'Redirected' }>, tree: Tree): string | null {
  for (const part of redirects) {
    if (part.type === 'HereString' && part.target) return expandValue(part.target, tree.constants)
    if (part.type === 'HereDoc') return part.body.text
  }
  return null
}

function mark(tree: Tree, shape: Shape, text: string): void {
  tree.shapes.push({ shape, text: text.length > 80 ? `${text.slice(0, 77)}...` : text })
}

/** A function that starts itself through a pipe or in the background doubles with each call. */
function callsItself(node: SyntaxNode, name: string, multiplied = false): boolean {
  if (node.type === 'Command') return multiplied && node.name?.value === name
  const more = multiplied || node.type === 'Pipeline' || (node.type === 'Statement' && node.background === true)
  let found = false
  forEachChild(node, (child) => {
    found ||= callsItself(child, name, more)
  })
  return found
}

type CommandNode = Extract<SyntaxNode, { type: 'Command' }>

const emptySimple = (tree: Tree): Simple => ({
  words: [],
  assignments: [],
  redirections: [],
  input: null,
  isFed: tree.isFed,
  guesses: [],
  isInside: tree.depth > 0,
  start: -1,
  end: -1,
})

function simple(node: CommandNode, source: string, tree: Tree): Simple {
  // A command of a loop stands for several, so it is not put in another form.
  const isOnce = tree.rounds === null
  const made = emptySimple(tree)
  made.start = isOnce ? node.pos : -1
  made.end = node.end
  if (node.name) made.words.push(word(node.name, source, tree))
  if (!isOnce) tree.unrolled += 1
  for (const part of node.prefix.length > 0 ? [...node.prefix, ...node.suffix] : node.suffix) {
    switch (part.type) {
      case 'Word':
        made.words.push(sampled(part, source, tree) ?? word(part, source, tree))
        break
      case 'Assignment':
        if (node.suffix.includes(part)) made.words.push(argumentAssignment(part, source, tree))
        else made.assignments.push(assignment(part, source, tree))
        break
      case 'Redirect':
        made.redirections.push({
          operator: part.operator,
          ...redirected(part.target, source, tree),
          source: source.slice(part.pos, part.end),
        })
        if (part.descriptor?.type === 'FileDescriptorVariable') mark(tree, 'expansion', part.descriptor.name)
        break
      case 'HereString':
        made.input = part.target ? hereString(part.target, source, tree) : ''
        mark(tree, 'here-string', '<<<')
        break
      case 'HereDoc':
        made.input = part.body.text
        visitOther(part, source, tree)
        break
      default:
        mark(tree, 'unknown', (part as SyntaxNode).type)
    }
  }
  made.input ??= tree.inherited
  follow(node, made, tree.constants)
  return made
}

function redirected(target: BashWord | undefined, source: string, tree: Tree): Pick<Redirection, 'target' | 'guess'> {
  if (!target) return { target: nothing, guess: null }
  const written = word(target, source, tree)
  return { target: written, guess: isPlain(written) ? null : (expandWords([target], tree.constants, 0)[0] ?? null) }
}

function hereString(target: BashWord, source: string, tree: Tree): string {
  const written = word(target, source, tree)
  return written.literal ? written.text : expandValue(target, tree.constants)
}

const nothing: Word = { text: '', literal: false, quoting: 'bare', pattern: null }

function assignment(node: Extract<SyntaxNode, { type: 'Assignment' }>, source: string, tree: Tree) {
  const plain = node.value.type === 'Word' && !node.append && !node.index
  if (node.index) visit(node.index, source, tree, true)
  if (node.value.type === 'Word') {
    const value = word(node.value, source, tree)
    const text = value.literal ? value.text : expandValue(node.value, tree.constants)
    const before = node.append ? (tree.constants.variables.get(node.name)?.at(-1)?.join(' ') ?? '') : ''
    remember(tree.constants, node.name, [before + text])
    return { name: node.name, value, plain }
  }
  visitOther(node.value, source, tree)
  const elements = expandWords(node.value.elements, tree.constants, 0).map(({ text }) => text)
  remember(tree.constants, node.name, elements)
  return { name: node.name, value: nothing, plain: false }
}

/** `export A=b`, `env A=b`: an argument of the form of an assignment is a word all the same. */
function argumentAssignment(node: Extract<SyntaxNode, { type: 'Assignment' }>, source: string, tree: Tree): Word {
  const { name, value, plain } = assignment(node, source, tree)
  if (!plain) return { ...nothing, text: node.text }
  return { text: `${name}=${value.text}`, literal: value.literal, quoting: value.quoting, pattern: null }
}

/** What these print is of a known form, whatever it is: a word with it is judged by a sample. */
const samples: readonly { program: RegExp; sample: string; option?: RegExp }[] = [
  { program: /^(?:pgrep|pidof)$/, sample: '4711', option: /^(?:-[a-z]*[al]|--list)/ },
  { program: /^(?:nproc|whoami|uname)$/, sample: 'a1', option: /^-[a-z]*[av]|^--(?:all|kernel-version)/ },
  { program: /^hostname$/, sample: 'localhost', option: /^-[a-zA-Z]*[IA]|^--all/ },
]

/** An argument with a loop's variable, or with a substitution of known form, as one that is known; null where it is neither. */
function sampled(node: BashWord, source: string, tree: Tree): Word | null {
  if (!node.parts || !/[$`]/.test(node.text)) return null
  let text = ''
  const scripts: SyntaxNode[] = []
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
  for (const script of scripts) visit(script, source, tree, false)
  return { text, literal: true, quoting: 'bare', pattern: null }
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

function word(node: BashWord, source: string, tree: Tree): Word {
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
    if (!known && part.type !== 'Glob') visitOther(part, source, tree)
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
