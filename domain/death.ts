import { z } from 'zod'

/**
 * A witness's word about a host. `fenced`: powered off or cut from its disks, and stays so.
 * `silent`: nothing is known, which is no sign of death. `sees`: what they look at; two who look at
 * the same are one witness.
 */
const witness = z.object({
  who: z.string(),
  sees: z.enum(['platform', 'monitoring', 'agent']),
  says: z.enum(['fenced', 'down', 'up', 'silent']),
  /** When it saw that; null where it does not say. */
  at: z.string().nullable(),
})
export type Witness = z.infer<typeof witness>

/** A host that is taken for dead, and whose VMs a plan starts elsewhere. */
const death = z.object({
  host: z.string(),
  witnesses: z.array(witness),
  /** Its platform starts them by itself once it has fenced the host: nothing is sent for them. */
  isForecast: z.boolean(),
})
export type Death = z.infer<typeof death>

/**
 * The conclusion of `safety/death.ts`. `unconfirmed`: nothing of it starts elsewhere until a person
 * says that it is off; `disputed`: not even then.
 */
export const judgedDeath = death.extend({
  verdict: z.enum(['fenced', 'forecast', 'witnessed', 'said', 'unconfirmed', 'disputed']),
  /** Witnesses with their words, and what follows. */
  sentence: z.string(),
})
export type JudgedDeath = z.infer<typeof judgedDeath>

/**
 * Hosts that a person states to be off, with an approval, after making sure by other means than
 * Nightshift.
 */
export const hostIsOff = z.array(z.string().min(1).max(100)).max(50)
