import { z } from 'zod'

/**
 * The report of a witness about a host. `fenced`: the host is powered off or cut from its disks,
 * and stays so. `silent`: the witness knows nothing, which is no sign of death. `sees`: what the
 * witness observes. Two witnesses that observe one thing count as one.
 */
const witness = z.object({
  who: z.string(),
  sees: z.enum(['platform', 'monitoring', 'agent']),
  says: z.enum(['fenced', 'down', 'up', 'silent']),
  /** The time of the observation; null if the witness does not report it. */
  at: z.string().nullable(),
})
export type Witness = z.infer<typeof witness>

/** A host that is considered dead and whose VMs a plan starts elsewhere. */
const death = z.object({
  host: z.string(),
  witnesses: z.array(witness),
  /**
   * Whether the platform itself starts the host's VMs once it has fenced the host. Nightshift then
   * sends no command.
   */
  isForecast: z.boolean(),
})
export type Death = z.infer<typeof death>

/**
 * The conclusion of `safety/death.ts` about a host. `unconfirmed`: no VM of the host is started
 * elsewhere until a person states that the host is off. `disputed`: no VM is started elsewhere,
 * even after a person's statement.
 */
export const judgedDeath = death.extend({
  verdict: z.enum(['fenced', 'forecast', 'witnessed', 'said', 'unconfirmed', 'disputed']),
  /** The reports of the witnesses, and the conclusion. */
  sentence: z.string(),
})
export type JudgedDeath = z.infer<typeof judgedDeath>

/**
 * Hosts that a person states to be off in an approval, after checking by means other than
 * Nightshift.
 */
export const hostIsOff = z.array(z.string().min(1).max(100)).max(50)
