/** Workflows that the worker registers. */
export { InvestigateIncidentGroup, ProcessIncidentQueue } from './group.ts'
export { InvestigateIncident } from './investigate.ts'
