import type { SyntaxNode } from '@lezer/common'

/**
 * Limits how much `label_replace` and `label_join` lengthen a label. Nested calls multiply: ten
 * levels of ten made 10^10 characters of a short label, and meanwhile no server checks its time
 * limit.
 */

const maxTimes = 10
const maxReplacement = 100
const maxSeparator = 20
const maxPattern = 200

/**
 * Returns why a call lengthens labels without a limit, together with the calls around it. Null if
 * its growth is limited, or if it is a call of another function.
 */
export function findLengthening(call: SyntaxNode, promql: string): string | null {
  let times = 1
  for (let node: SyntaxNode | null = call; node; node = node.parent) {
    const factor = node.name === 'FunctionCall' ? timesOf(node, promql) : 1
    if (typeof factor === 'string') return factor
    times *= factor
  }
  return times > maxTimes ? `label_replace and label_join make a label more than ${maxTimes} times as long` : null
}

function timesOf(call: SyntaxNode, promql: string): number | string {
  const name = call.getChild('FunctionIdentifier')?.firstChild?.name
  if (name !== 'LabelReplace' && name !== 'LabelJoin') return 1
  const [, ...words] = listChildren(call.getChild('FunctionCallBody')).filter(({ name }) => name !== 'LineComment')
  // Refuses a text in brackets, which is still a text but needed by no query.
  if (!words.every((word) => word.name === 'StringLiteral'))
    return `${promql.slice(call.from, call.from + 13)} takes plain strings`
  const texts = words.map(({ from, to }) => promql.slice(from + 1, to - 1))
  if (name === 'LabelJoin')
    return (texts[1] ?? '').length > maxSeparator
      ? `a separator is longer than ${maxSeparator} characters`
      : Math.max(1, texts.length - 2)
  const [, replacement = '', , pattern = ''] = texts
  // Refuses an escape, which may hide a dollar sign.
  if (replacement.includes('\\')) return 'the replacement of label_replace has a backslash'
  if (replacement.length > maxReplacement || pattern.length > maxPattern)
    return `label_replace takes a replacement of ${maxReplacement} characters and an expression of ${maxPattern}`
  return Math.max(1, replacement.match(/\$(?!\$)/g)?.length ?? 0)
}

function listChildren(node: SyntaxNode | null): SyntaxNode[] {
  const found: SyntaxNode[] = []
  for (let child = node?.firstChild ?? null; child; child = child.nextSibling) found.push(child)
  return found
}
