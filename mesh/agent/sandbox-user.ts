import type { Confinement } from './confine.ts'
import { dropAll, find, isRoot } from './rights.ts'

/**
 * Root becomes nobody: it reads what everybody may, writes only where everybody may, and has the network. The agent's own files are
 * closed to it by their modes. A program that obeys something is not kept back by that, so none runs unasked here (`guard.ts`).
 */
export function byUser(): Confinement | null {
  const setpriv = find('setpriv')
  if (!setpriv || !isRoot()) return null
  const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups', ...dropAll]
  return {
    sandbox: 'user',
    wrap: async (argv) => [setpriv, ...nobody, '--', ...argv],
    environment: {},
    endsWhole: () => false,
    canShow: () => true,
    close: () => undefined,
  }
}
