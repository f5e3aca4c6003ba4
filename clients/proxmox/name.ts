import { z } from 'zod'

/** A node's name: a host name without dots. */
export const nodeName = z
  .string()
  .max(63)
  .regex(/^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$/, 'is not the name of a node')

/** The number of a guest. Virtual machines and containers share one row of numbers. */
export const vmid = z
  .union([z.number(), z.string().regex(/^\d{3,9}$/)])
  .transform(Number)
  .pipe(z.number().int().min(100).max(999_999_999))

/** Perl's booleans, as JSON has them: 1, "1", true, and their opposites. */
export const flag = z
  .union([z.boolean(), z.number(), z.string()])
  .transform((given) => /^(1|true)$/.test(String(given)))

export type Kind = 'qemu' | 'lxc'

/** `vm-101`, for virtual machines and containers alike: the number says which, and a bare number would look like a size. */
export function vmIdOf(number: number): string {
  return `vm-${number}`
}

/** The number in `vm-101`; null for what is no such id. */
export function numberOf(vmId: string): number | null {
  const parsed = vmid.safeParse(/^vm-([1-9]\d*)$/.exec(vmId)?.[1])
  return parsed.success ? parsed.data : null
}

/** What the HA manager calls a guest. */
export function sidOf(kind: Kind, number: number): string {
  return `${kind === 'qemu' ? 'vm' : 'ct'}:${number}`
}
