import type { DryRunPlan } from '../domain/dry-run-plan.ts'
import { inert } from './inert.ts'
import { formatTable } from './table.ts'

/** Which VM goes where, by wave, and which steps have to be over before. Plans of older releases have no waves. */
export function formatSteps(steps: DryRunPlan['steps']): string {
  const hasWaves = steps.some(({ wave }) => wave !== null)
  const rows = [...steps]
    .sort((a, b) => (a.wave ?? 0) - (b.wave ?? 0) || a.step - b.step)
    .map(({ step, wave, action, vm, from, to, needs }) => {
      const [before, after] = hasWaves ? [[String(wave ?? '')], [needs.join(', ')]] : [[], []]
      return [String(step), ...before, action, vm, from ?? '(nowhere)', `→ ${to}`, ...after].map((cell) => inert(cell))
    })
  const head = hasWaves ? ['STEP', 'WAVE', 'DO', 'VM', 'FROM', '→ TO', 'AFTER'] : ['STEP', 'DO', 'VM', 'FROM', '→ TO']
  return formatTable(head, rows, hasWaves ? 6 : 3)
}
