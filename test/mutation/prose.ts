import type { Ignorer, NodePath } from '@stryker-mutator/api/ignore'
import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin'

/** Of Babel's tree as much as is asked here. */
type Node = { type: string; value?: unknown; quasis?: { value: { raw: string } }[] }
type Path = NodePath & { node: Node; parentPath: Path | null }

/**
 * Leaves sentences alone. They are for readers, and no test should hold them to the letter: a mutant that empties
 * one survives and says nothing. A list of words that code splits or compares is no sentence.
 */
const prose: Ignorer = {
  shouldIgnore(found) {
    const path = found as Path
    const text = textOf(path.node)
    if (text === null || !/\p{L}[,:;')]* \(?'?(?:\p{L}|\$)/u.test(text)) return undefined
    return path.parentPath && isRead(path.parentPath.node) ? undefined : 'a sentence for people'
  },
}

function textOf(node: Node): string | null {
  if (node.type === 'StringLiteral') return String(node.value)
  return node.quasis?.map(({ value }) => value.raw).join('$') ?? null
}

/** `'a b'.split(' ')`, `text === 'a b'` and `case 'a b'` are read by code. */
function isRead({ type }: Node): boolean {
  return type === 'MemberExpression' || type === 'BinaryExpression' || type === 'SwitchCase'
}

export const strykerPlugins = [declareValuePlugin(PluginKind.Ignore, 'prose', prose)]
