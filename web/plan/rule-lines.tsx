import { formatList } from '../../domain/format.ts'
import type { BarredVm } from '../../domain/placement.ts'
import { Inert, inertText } from '../inert.tsx'
import { fitText, type PictureHost } from './layout.ts'

export const ruleHeight = 16
/** The most lines of rules at one host. */
export const maxRules = 2

type RuleLinesProps = { rules: PictureHost['rules']; x: number; y: number; width: number }

/** Shows each rule in a few words below a bar, and as a complete sentence under the pointer. */
export function RuleLines({ rules, x, y, width: room }: RuleLinesProps) {
  const shown = rules.length > maxRules ? rules.slice(0, maxRules - 1) : rules
  const more = rules.slice(shown.length)
  const lines = [
    ...shown,
    ...(more.length > 0 ? [{ short: `${more.length} more rules`, text: more.map(({ text }) => text).join(' ') }] : []),
  ]
  return lines.map(({ short, text }, index) => (
    <text key={short} x={x} y={y + (index + 1) * ruleHeight} className="rule">
      <title>{text}</title>
      {fitText(short, room)}
    </text>
  ))
}

/**
 * Lists the sentences of all hosts, for people without a pointer and for screen readers, for which
 * the picture is one image.
 */
export function Rules({ barred }: { barred: readonly BarredVm[] }) {
  const vms = [...new Set(barred.map(({ vm }) => inertText(vm)))]
  if (vms.length === 0) return null
  return (
    <details>
      <summary>Why the other hosts cannot take {formatList(vms, 'or')}</summary>
      <ul>
        {barred.map(({ vm, host, text }) => (
          <Inert key={`${vm} ${host}`} as="li" text={text} />
        ))}
      </ul>
    </details>
  )
}
