/** What the worker registers. */
export { InvestigateIncidentGroup } from './group.ts'
export { InvestigateIncident } from './investigate.ts'
export { ProcessIncidentQueue } from './queue.ts'
