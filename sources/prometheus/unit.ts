import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'

/**
 * The unit of what an expression computes, as far as the name of its metric says it (https://prometheus.io/docs/practices/naming/): bytes or seconds.
 * Null where nothing says it, such as a rate or a quotient.
 */
export function findUnit(promql: string): string | null {
  const top = parser.parse(promql).topNode.firstChild
  return top ? unitOfNode(top, promql) : null
}

/** Aggregations and functions whose result has the unit of their argument. */
const keepsUnit =
  /^(?:sum|avg|min|max|quantile|topk|bottomk|(?:avg|min|max|sum|last|quantile)_over_time|abs|ceil|floor|round|clamp(?:_min|_max)?|delta|idelta|increase|sort(?:_desc)?|predict_linear|label_replace|label_join)$/

function unitOfNode(node: SyntaxNode, text: string): string | null {
  const words = text.slice(node.from, node.to)
  switch (node.name) {
    case 'VectorSelector': {
      const [, unit = null] = /^[a-zA-Z_:][\w:]*?_(bytes|seconds)(?:_total|_sum)?(?=[{\s]|$)/.exec(words) ?? []
      return unit
    }
    case 'AggregateExpr':
    case 'FunctionCall': {
      const [, name = ''] = /^\s*([a-z_]+)/i.exec(words) ?? []
      if (name === 'time') return 'seconds'
      const arguments_ = node.getChild('FunctionCallBody')
      return keepsUnit.test(name) && arguments_ ? unitOfAny(arguments_, text) : null
    }
    case 'BinaryExpr': {
      const [left, right] = [node.firstChild, node.lastChild]
      const isSum = node.getChild('Add') !== null || node.getChild('Sub') !== null
      if (!left || !right || !isSum) return null
      const unit = unitOfNode(left, text)
      return unit === unitOfNode(right, text) ? unit : null
    }
    default:
      return unitOfAny(node, text)
  }
}

/** Of the first thing below that has one: what is in parentheses, a range, an offset. */
function unitOfAny(node: SyntaxNode, text: string): string | null {
  for (let child = node.firstChild; child; child = child.nextSibling) {
    const unit = unitOfNode(child, text)
    if (unit) return unit
  }
  return null
}
