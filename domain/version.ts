import manifest from '../package.json' with { type: 'json' }

/** The version of the package. Command, documents, metrics and image have this version. */
export const version: string = manifest.version
