import type { CapabilityContext, Outcome } from './capability.ts'

/**
 * What `pkg.*` asks of a machine's package manager. Another one joins by implementing this and a line in `capabilities/pkg.ts`; names
 * have been checked, begin with no dash and end in none.
 */
export type PackageManager = {
  name: string
  /** Null when this machine has it; else what is missing, in words. */
  lacks(): Promise<string | null>
  /** Why the agent could not install anything with it, or null. */
  lacksRights(): string | null
  /** `{ packages: [{ name, description }], total }` */
  search(text: string, limit: number, context: CapabilityContext): Promise<Outcome>
  /** `{ packages: [{ name, before, after }], output }`; lines are emitted as they come. */
  install(packages: readonly string[], context: CapabilityContext): Promise<Outcome>
  /** The same without doing it: `{ diff, checks, would_change }`, where the diff lists what would come and change. */
  simulate(packages: readonly string[], context: CapabilityContext): Promise<Outcome>
}
