import { z } from 'zod'

/** Kinds of setting that more than one subject has. */

export const port = z.coerce.number().int().min(0).max(65_535)
export const flag = z.enum(['true', 'false', '1', '0']).transform((text) => text === 'true' || text === '1')
export const url = z.url({ protocol: /^https?$/, error: 'is not an http(s) URL' })
