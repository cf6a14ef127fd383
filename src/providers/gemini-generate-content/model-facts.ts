import type { WireThinkingLevel } from './wire.ts';

/** The facts of a model that requests depend on. */
export interface ModelFacts {
  /** 2.5, 3, 3.1 …; undefined for models that are not Gemini. */
  generation: number | undefined;
  /** The thinking setting of the model. `none`: the model does not think, and refuses the field. */
  thinking: 'budget' | 'level' | 'none';
  /** The range of `thinkingBudget`, and whether 0 turns thinking off: Pro models always think. */
  budget: { least: number; most: number; can_rest: boolean };
  /** The values of `thinkingLevel`, weakest first. */
  levels: readonly WireThinkingLevel[];
  /** Whether declared functions and JSON output can be combined. */
  is_json_with_tools: boolean;
  /** Whether results of functions may contain media. */
  has_media_results: boolean;
  has_penalties: boolean;
  has_logprobs: boolean;
  has_system: boolean;
}

const PRO: readonly WireThinkingLevel[] = ['LOW', 'HIGH'];
const NEWER_PRO: readonly WireThinkingLevel[] = ['LOW', 'MEDIUM', 'HIGH'];
const FLASH: readonly WireThinkingLevel[] = ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'];
const IMAGE: readonly WireThinkingLevel[] = ['MINIMAL', 'HIGH'];

/** The newest generation, for names without a version (`gemini-flash-latest`). */
const NEWEST = 3.5;

/**
 * The facts of a model, by the provider's name of it. Sources: https://ai.google.dev/gemini-api/docs/thinking (levels,
 * budgets), /docs/gemini-3 (signatures, media in function results, JSON output with tools), /docs/image-generation,
 * /gemma/docs/core/gemma_on_gemini_api (no system instructions), as of November 2026, and recorded exchanges. AI Studio refuses
 * penalties and logprobs from 2.5 on ("Penalty is not enabled for models/gemini-2.5-flash"), Vertex AI from Gemini 3 on.
 */
export function modelFacts(upstreamModel: string, isVertex: boolean): ModelFacts {
  const name = upstreamModel.toLowerCase();
  const version = /gemini-(\d+(?:\.\d+)?)/.exec(name)?.[1];
  const generation = version === undefined ? (/gemini-.*latest/.test(name) ? NEWEST : undefined) : Number(version);
  const isNew = generation !== undefined && generation >= 3;
  const hasTokenOptions = generation === undefined || generation < (isVertex ? 3 : 2.5);
  const isOtherOutput = /-(?:image|tts|audio|live|embedding|robotics)/.test(name);
  return {
    generation,
    thinking: thinkingOf(generation, isOtherOutput, name),
    budget: budgetOf(name),
    levels: levelsOf(generation, name),
    is_json_with_tools: isNew,
    has_media_results: isNew,
    has_penalties: hasTokenOptions,
    has_logprobs: hasTokenOptions,
    has_system: !/gemma-[123]/.test(name) && !/-tts/.test(name),
  };
}

function thinkingOf(generation: number | undefined, makesOther: boolean, name: string): ModelFacts['thinking'] {
  if (generation === undefined || generation < 2.5) return 'none';
  if (generation >= 3) return /-(?:tts|live)/.test(name) ? 'none' : 'level';
  return makesOther && !name.includes('robotics') ? 'none' : 'budget';
}

function budgetOf(name: string): ModelFacts['budget'] {
  if (/flash-lite/.test(name)) return { least: 512, most: 24_576, can_rest: true };
  if (/flash|robotics/.test(name)) return { least: 1, most: 24_576, can_rest: true };
  return { least: 128, most: 32_768, can_rest: false };
}

function levelsOf(generation: number | undefined, name: string): readonly WireThinkingLevel[] {
  if (/-image/.test(name)) return /pro/.test(name) ? ['HIGH'] : IMAGE;
  if (!/pro/.test(name)) return FLASH;
  return generation !== undefined && generation > 3 ? NEWER_PRO : PRO;
}
