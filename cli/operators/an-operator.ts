import { z } from 'zod'

// Loose, so that what a newer API adds still reaches --json.
export const apiOperator = z.looseObject({
  name: z.string(),
  role: z.string(),
  maxRisk: z.string(),
  incidentTypes: z.array(z.string()).nullable(),
  disabledAt: z.string().nullable(),
})
