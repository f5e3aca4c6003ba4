import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client'
import { manualChangeType } from '../domain/manual-change.ts'
import { defaultTaskQueue, groupWorkflowId, investigationId } from '../domain/step-key.ts'

/**
 * Starts the run of a write call that a person makes directly. A second start has no effect. Throws
 * Temporal's error if Temporal cannot be reached.
 */
export async function startManualChange(
  client: Client,
  incidentId: string,
  taskQueue = defaultTaskQueue,
): Promise<void> {
  const input = { incidentId, attempt: 1, role: 'leader', groupId: `grp_${incidentId}` }
  try {
    await client.workflow.start('InvestigateIncident', {
      workflowId: investigationId({ incidentId, attempt: 1 }),
      taskQueue,
      args: [{ ...input, group: groupWorkflowId(manualChangeType) }],
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      staticSummary: manualChangeType,
    })
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
  }
}
