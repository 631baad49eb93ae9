// The data of a page, as src/*.rs writes it.

interface Block { type: 'f32' | 'u32' | 'u16' | 'u8'; data: string }
interface PictureData { name: string; id: string; width: number; height: number; step: number }
interface MapData { low: number; step: number; values: Block }

/** A part of a picture: its corners, inliers, their median residual, and how far right matches are off there. */
interface PartData { corners: Point[]; inliers: number; residual: number | null; off: number | null }

interface FeaturesData {
  view: 'features';
  picture: PictureData;
  total: number;
  support: number;
  columns: Record<'x' | 'y' | 'scale' | 'angle' | 'response', Block>;
}

interface MatchesData {
  view: 'matches';
  a: PictureData;
  b: PictureData;
  total: number;
  model: { kind: string; matrix: number[] } | null;
  truth: number[] | null;
  support: number;
  parts: PartData[];
  residual_name: string;
  columns: Record<string, Block>;
  /** Of two compared runs: which has each match. */
  runs?: Block;
}

interface RegistrationData {
  view: 'registration';
  reference: PictureData;
  warped: PictureData;
  covered: Block;
  /** Of two compared runs: `reference` is the picture as the run before warped it. */
  before?: boolean;
  total: number;
  parts: PartData[];
  arrows: { px: Block; py: Block; qx: Block; qy: Block };
}

interface DisparityData {
  view: 'disparity';
  width: number;
  height: number;
  step: number;
  columns: number;
  rows: number;
  left: PictureData | null;
  right: PictureData | null;
  disparity: MapData;
  truth: MapData | null;
  confidence: Block | null;
  reasons: Block | null;
  reason_names: [number, string][];
  counts: Record<string, number> | null;
  rectified: { focal: number; principal: [number, number]; doffs: number; baseline: number } | null;
  range: [number, number];
  /** Of two compared runs: `truth` is the disparities of the one before. */
  before?: boolean;
}

interface CollectionData {
  view: 'collection';
  /** Photographs; `id` is the thumbnail in the still picture, `covers` the pixels of the photograph under it. */
  images: {
    name: string;
    width: number;
    height: number;
    features: number | null;
    problem: string | null;
    id: string | null;
    step: number | null;
    covers: Point | null;
  }[];
  /** How many photographs had a thumbnail. */
  thumbnails_of: number;
  /** A bit for each pair, row by row of the upper triangle; null where all were tried. */
  tried: Block | null;
  /** The strongest first. */
  pairs: { a: Block; b: Block; matches: Block; inliers: Block; configuration: Block; lines: Block; before?: Block; runs?: Block };
  configurations: string[];
  /** x and y in A and in B of each line, as 65535ths of the photographs' sides, pair after pair. */
  ends: Block;
}

type ViewData = FeaturesData | MatchesData | RegistrationData | DisparityData | CollectionData;
interface PageData { maps: Record<string, number[][]>; views: ViewData[] }

type Point = [number, number];
interface Rect { x: number; y: number; w: number; h: number }
/** A picture that can be drawn, and the pixels of its original that it covers. */
interface Sheet { image: CanvasImageSource; width: number; height: number; covers: Point; serial: number }

/** Draws on a canvas; coordinates are its CSS pixels. */
interface Painter {
  readonly name: string;
  begin(width: number, height: number, ratio: number, ground: number[]): void;
  /** Draws a sheet into a rectangle, which is then turned about a point, clipped to `clip`. */
  sheet(sheet: Sheet, to: Rect, clip: Rect, alpha: number, smooth: boolean, turn?: { angle: number; about: Point }): void;
  /** Segments of x0, y0, x1, y1, each with a colour 0xAABBGGRR. */
  lines(ends: Float32Array, colours: Uint32Array, count: number, width: number): void;
  /** Discs of x, y, radius with a dark rim. */
  dots(places: Float32Array, colours: Uint32Array, count: number): void;
  end(): void;
}
