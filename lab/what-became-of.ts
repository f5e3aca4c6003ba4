import type { Outcome } from './effects.ts'
import type { Lab } from './state.ts'

/**
 * What became of a write that was under way when an earlier controller died. All processes died with it, and a VM's
 * definition is changed last, so for a VM the definition tells. Of a converge nothing remains to tell by: null.
 */
export function whatBecameOf({ placement }: Pick<Lab, 'placement'>, request: string): Outcome | null {
  const match = /^POST \/v1\/vms\/([^/]+)\/(start|migrate) (.*)$/.exec(request)
  if (!match) return null
  const [, vm, action, body] = match
  const { host, to } = JSON.parse(body!) as { host?: string; to?: string }
  const target = action === 'start' ? host : to
  return placement[vm!] === target
    ? { status: 'done', detail: `${vm} is defined on ${target}`, result: { vm, target } }
    : { status: 'failed', detail: `the controller ended before ${vm} was defined on ${target}`, result: {} }
}
