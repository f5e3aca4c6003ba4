import { z } from 'zod'
import { device } from '../../domain/device.ts'

// Loose, so that what a newer API adds still reaches --json.
export const apiDevice = z.looseObject({ ...device.shape, tools: z.array(z.string()) })
export type ApiDevice = z.infer<typeof apiDevice>
