/** What operators filter investigations by in Temporal's own UI; all are keywords. A namespace without one of them fails every run. */
export const searchAttributeNames = ['IncidentType', 'Severity', 'Target', 'Role', 'Status']
